"""Delay scheduling on fair sharing: a job that finds no local node lets others go first, for a bounded time.

Zaharia et al., "Delay Scheduling: A Simple Technique for Achieving Locality and Fairness in Cluster Scheduling",
EuroSys 2010, Algorithm 3 (appendix, hierarchical levels): a job at level 0 takes nodes that hold its input; after
`node_wait_s` without one, nodes of the same rack; after `rack_wait_s` more, any. What it took last is its level from
then on, and the wait begins anew with each task. Racks are all that it knows of between nodes, not which virtual
machines share a host.

* There, nodes offer themselves one after the other, and the closest comes when it comes. Here all free nodes are seen
  at once, so a job takes the closest there is, and waits when that is too far.
* The wait is the time since the job was first passed over, not the sum of the intervals between heartbeats in which it
  was. They differ while no node is free, when the original's stands still.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.baselines import LEAST_LOADED, Closest, FairShare
from boathouse_policies.framework import Hooks, Observer, Patience, Profile

if TYPE_CHECKING:
    from boathouse_policies.framework import CycleState, PendingClass, Score
    from boathouse_policies.framework.cycle_state import Assignment


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Hadoop's defaults, which the ILA paper quotes (4.2).

    Attributes:
        node_wait_s: mapred.fairscheduler.locality.delay.node.
        rack_wait_s: mapred.fairscheduler.locality.delay.rack: in addition.
    """

    node_wait_s: float = 5.0
    rack_wait_s: float = 5.0


@dataclasses.dataclass(slots=True)
class _Level:
    """Of one class: the farthest that it takes at once, and since when it has been passed over."""

    allowed: model.Distance = model.Distance.NODE
    since_s: float | None = None


class Delay(Patience, Hooks, Observer):
    """See the module's docstring. Tasks without input in blocks never wait.

    It dumps nothing: waits are seconds long, and begin anew after a restart.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._levels: dict[model.JobId, dict[model.ClassId, _Level]] = {}

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Return until when the class waits for a closer node; None takes this node."""
        level, found = self._levels.get(pending.job.id, {}).get(pending.task_class.id, _NEW), pending.levels[node]
        if not pending.queued.pool.located or found <= level.allowed:
            return None
        since_s = state.view.now_s if level.since_s is None else level.since_s
        until_s = since_s + self._wait_s(level.allowed, found)
        if state.view.now_s >= until_s:
            return None
        message = f"the closest free node is {_WHERE[found]} its input: it waits for a closer one"
        verdict = model.Verdict(code=model.Code.PATIENCE, message=message)
        return model.Wait(task_class=pending.task_class, job=pending.job, verdict=verdict, until_s=until_s)

    def waits(self, wait: model.Wait, state: CycleState) -> None:
        """Remember since when a class has been passed over."""
        level = self._level(wait.job.id, wait.task_class.id)
        if level.since_s is None:
            level.since_s = state.view.now_s

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Remember the level that a class took; it is not passed over any more."""
        pending = assignment.pending
        if pending.queued.pool.located:
            level = self._level(pending.job.id, pending.task_class.id)
            level.allowed, level.since_s = assignment.pick.distance, None

    def _level(self, job: model.JobId, task_class: model.ClassId) -> _Level:
        return self._levels.setdefault(job, {}).setdefault(task_class, _Level())

    def _wait_s(self, allowed: model.Distance, found: int) -> float:
        for_node = self._config.node_wait_s if allowed is model.Distance.NODE else 0.0
        return for_node + (self._config.rack_wait_s if found == model.Distance.ANYWHERE else 0.0)

    def observe(self, event: model.Event) -> None:
        """Forget jobs that are over."""
        if isinstance(event, model.Ended):
            self._levels.pop(event.job, None)


LEVEL = 4.0  # above the range of a score within -1..1: closeness comes first

_NEW = _Level()
_WHERE = {
    model.Distance.SERVER: "on the host of",
    model.Distance.RACK: "in the rack of",
    model.Distance.ANYWHERE: "in another rack than",
}


def build(score: Score = LEAST_LOADED, config: Config | None = None) -> Profile:
    """The profile `delay`."""
    delay = Delay(config or Config())
    return Profile(
        name="delay",
        order=FairShare(),
        score=Closest(score, LEVEL),
        patience=delay,
        observers=(delay,),
        hooks=(delay,),
        sees_hosts=False,
    )
