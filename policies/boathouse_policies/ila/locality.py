"""LASM: close nodes first, and adaptive delay scheduling (4.2, eq. 4; 4.4, Algorithm 2).

Node, server, rack and off-rack are the four levels. The wait is in proportion to the task's input:

    T_ij = F_j * T_i / F_b, and 0 where F_j / F_b <= 0.01

A class accepts a node whose closest task is within L_j, or once it has waited for the sum of T_lj from L_j to below
that task's level; then L_j becomes that level.

Readings: W_j is reset on acceptance, which the listing leaves out. Deviations: there, nodes offer themselves one after
the other; here all free nodes are seen at once and the closest is taken, so a class waits only where none is close
enough. W_j is the time since the class was first passed over. A class without input in blocks has nothing to wait for.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework import Hooks, Observer, Patience
from boathouse_policies.ila.profiling import STAGES

if TYPE_CHECKING:
    from boathouse_policies.framework import CycleState, PendingClass
    from boathouse_policies.framework.cycle_state import Assignment
    from boathouse_policies.ila.config import Config


@dataclasses.dataclass(slots=True)
class _ClassDelay:
    """A class' state in Algorithm 2.

    Attributes:
        level: L_j, the level of the task accepted last.
        since_s: Since when it has been passed over; None if it has not.
        read_bytes: What its last task read; None before one has ended.
    """

    level: int = 0
    since_s: float | None = None
    read_bytes: float | None = None


class AdaptiveDelay(Patience, Hooks, Observer):
    """Algorithm 2 for all classes: the last word on a node (Algorithm 3, lines 10 to 15).

    Args:
        config: The constants.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._delays_s = (config.node_delay_s, config.delay_s, config.delay_s)
        self._jobs: dict[model.JobId, dict[model.ClassId, _ClassDelay]] = collections.defaultdict(
            lambda: collections.defaultdict(_ClassDelay)
        )

    def _known(self, task_class: model.TaskClass) -> _ClassDelay:
        """Read the state of a class."""
        classes = self._jobs.get(task_class.job)
        return _NEW if classes is None else classes.get(task_class.id, _NEW)

    def input_share(self, task_class: model.TaskClass) -> float:
        """F_j / F_b, 1 at most: a task's input as a share of a block; a whole block where nothing is known."""
        stated = task_class.estimates.input_bytes()
        size = self._known(task_class).read_bytes if stated is None else stated
        return 1.0 if size is None else min(size / self._config.block_bytes, 1.0)

    def delay_s(self, task_class: model.TaskClass, level: int, found: int) -> float:
        """How long a class that accepts `level` waits before it accepts `found`, eq. 4 summed up."""
        share = self.input_share(task_class)
        return share * sum(self._delays_s[level:found]) if share > self._config.least_input_share else 0.0

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Until when the class waits for a closer node; None takes this node."""
        task_class, now_s = pending.task_class, state.view.now_s
        if task_class.stage not in STAGES or not pending.queued.pool.located:
            return None
        known, found = self._known(task_class), int(pending.levels[node])
        if found <= known.level:
            return None
        since_s = now_s if known.since_s is None else known.since_s
        until_s = since_s + self.delay_s(task_class, known.level, found)
        if now_s >= until_s:
            return None
        return model.Wait(task_class=task_class, job=pending.job, verdict=_PASSED_OVER[found], until_s=until_s)

    def waits(self, wait: model.Wait, state: CycleState) -> None:
        """A class waits: since now, unless it did before."""
        if wait.verdict in _VERDICTS:
            known = self._jobs[wait.job.id][wait.task_class.id]
            known.since_s = state.view.now_s if known.since_s is None else known.since_s

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """A class accepted a node: L_j is its level, and the class is not passed over any more."""
        pending = assignment.pending
        if pending.queued.pool.located and pending.task_class.stage in STAGES:
            known = self._jobs[pending.job.id][pending.task_class.id]
            known.level, known.since_s = int(assignment.pick.distance), None

    def observe(self, event: model.Event) -> None:
        """Learn how much tasks read, and forget jobs that are over."""
        match event:
            case model.Finished() if "read_bytes" in event.counters:
                read_bytes = event.counters["read_bytes"] + event.counters.get("remote_bytes", 0.0)
                self._jobs[event.job][event.task_class].read_bytes = read_bytes
            case model.Ended():
                self._jobs.pop(event.job, None)
            case _:
                pass


_NEW = _ClassDelay()
LEVEL = 1e6  # above any slowdown: closeness comes first
_PASSED_OVER = {
    int(distance): model.Verdict(
        code=model.Code.PATIENCE, message=f"the closest free node is {where} its input: it waits for a closer one"
    )
    for distance, where in (
        (model.Distance.NODE, "the node of"),
        (model.Distance.SERVER, "on the host of"),
        (model.Distance.RACK, "in the rack of"),
        (model.Distance.ANYWHERE, "in another rack than"),
    )
}
_VERDICTS = frozenset(_PASSED_OVER.values())
