"""A scheduler that is told the truth, for the reasons of rows: what could be had of avoiding interference at all.

It knows which programs are I/O-bound, and how many maps of either kind a host takes before any is slowed down. What it
does not reach, no model of interference can. Else it is ILA: fair sharing, adaptive delay, closest nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from boathouse_lab.reproduce.ila import programs
from boathouse_policies import ila, model
from boathouse_policies.baselines import LEAST_LOADED, Closest, FairShare
from boathouse_policies.framework import PREDICATES, Filter, Groups, Observer, Patience, Profile, Reserve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where

NAME = "oracle"

_IO_BOUND = {program.name for program in programs.ALL if program.io_bound}


class Oracle(Filter, Patience, Reserve, Observer):
    """Caps of maps of a kind on a host, as a filter; it counts what is placed.

    Args:
        io: I/O-bound maps.
        cpu: CPU-bound ones.
    """

    def __init__(self, *, io: int, cpu: int) -> None:
        self._caps = {True: io, False: cpu}
        self._counts: dict[bool, np.ndarray] = {}
        self._running: dict[tuple[model.ClassId, model.NodeName], list[bool]] = {}
        self._groups = Groups((), ())
        self._names: Mapping[model.NodeName, int] = {}
        self._delay = ila.AdaptiveDelay(ila.Config(threshold=None))

    def profile(self) -> Profile:
        """Return the scheduler."""
        return Profile(
            name=NAME,
            order=FairShare(),
            filters=(*PREDICATES, self),
            score=Closest(LEAST_LOADED, ila.LEVEL),
            patience=self,
            reserve=self,
            observers=(self, self._delay),
            hooks=(self._delay,),
        )

    @override
    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return, as a filter, hosts that take one more; as a reserve it keeps nothing, so nodes pass there too."""
        if pending.task_class.stage is not model.Stage.MAP:
            return None
        self._adopt(state)
        kind = pending.job.kind in _IO_BOUND
        free: model.BoolVector = (self._counts[kind] < self._caps[kind])[self._groups.of[where]]
        return free

    def _adopt(self, state: CycleState) -> None:
        layout = state.view.layout
        if self._names is not layout.index:
            self._names, self._groups = layout.index, layout.servers
            self._counts = {kind: np.zeros(len(self._groups), np.int64) for kind in (False, True)}

    @override
    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return nodes of full hosts."""
        mask = self.mask(pending, state, slice(None))
        return [] if mask is None else [model.Refusal(reason="host is full", nodes=int((among & ~mask).sum()))]

    @override
    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Wait as ILA's delays do; count what is taken."""
        wait = self._delay.wait(pending, node, state)
        if wait is None and pending.task_class.stage is model.Stage.MAP:
            self._adopt(state)
            kind, host = pending.job.kind in _IO_BOUND, int(self._groups.of[node])
            self._counts[kind][host] += 1
            self._running.setdefault((pending.task_class.id, state.view.layout.names[node]), []).append(kind)
            for member in self._groups.members[host].tolist():
                state.touch(member)
        return wait

    @override
    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Look again in a second: a place on a host may come free without room on the nodes that it fits."""
        verdict = model.Verdict(code=model.Code.PATIENCE, message="every host has as many of its kind as it takes")
        until_s = state.view.now_s + 1.0
        return (model.Wait(task_class=pending.task_class, job=pending.job, verdict=verdict, until_s=until_s),)

    @override
    def observe(self, event: model.Event) -> None:
        """Count what has ended."""
        if isinstance(event, model.Finished | model.Failed):
            kinds = self._running.get((event.task_class, event.node))
            if kinds:
                self._counts[kinds.pop()][self._groups.of[self._names[event.node]]] -= 1


def caps(assumed: programs.Assumed, cores: float = 10.0, disk_mb_per_s: float = 100.0) -> tuple[int, int]:
    """Return how many I/O- and CPU-bound maps a host takes unslowed, of as many as it has slots."""
    share = assumed.alone_mb_per_s / disk_mb_per_s
    calm = [n for n in range(1, _SLOTS + 1) if n * share * (1 + assumed.seek * (n - 1)) <= 1.0 + _SLACK]
    return max(calm, default=1), int(cores * _FLAT)


_SLOTS, _FLAT, _SLACK = 12, 0.8, 0.05
