"""Delay scheduling on fair sharing: a job that finds no local node lets others go first, for a bounded time.

Zaharia et al., "Delay Scheduling: A Simple Technique for Achieving Locality and Fairness in Cluster Scheduling",
EuroSys 2010, Algorithm 3 (appendix, hierarchical levels): a job at level 0 takes nodes that hold its input; after 5 s
without one, nodes of the same rack; after 5 s more, any. What it took last is its level from then on, and each
task starts a new wait. The profile `delay` knows which nodes share a rack, but not which virtual machines share a host.

* There, nodes offer themselves one after the other, and the closest comes when it comes. Here all free nodes are seen
  at once, so a job takes the closest there is, and waits when that is too far.
* The wait is the time since the job was first passed over, not the sum of the intervals between heartbeats in which it
  was. They differ while no node is free, when the original's stands still.
"""

import collections
import dataclasses
from collections.abc import Sequence

from boathouse_policies import model
from boathouse_policies.baselines import LEAST_LOADED, Closest, FairShare
from boathouse_policies.framework import CycleState, Hooks, Observer, Patience, PendingClass, Profile, Score
from boathouse_policies.framework.cycle_state import Assignment

HADOOP_S = (5.0, 0.0, 5.0)
"""Hadoop's defaults, which the ILA paper quotes (4.2): mapred.fairscheduler.locality.delay.node and .rack."""


@dataclasses.dataclass(slots=True)
class _Level:
    """Of one class: the farthest level that it takes at once, and since when it has been passed over."""

    allowed: int = model.Distance.NODE
    since_s: float | None = None


class Delay(Patience, Hooks, Observer):
    """Delay a class, with input in blocks, until a node close to it is free, for a bounded time. Not dumped."""

    def __init__(self, delays_s: Sequence[float]) -> None:
        self._delays_s = delays_s
        self._levels: dict[model.JobId, dict[model.ClassId, _Level]] = collections.defaultdict(
            lambda: collections.defaultdict(_Level)
        )

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether a class may wait: its input is in blocks."""
        return pending.queued.pool.located

    def delay_s(self, task_class: model.TaskClass, level: int, found: int) -> float:  # noqa: ARG002 - ILA's depends on it
        """Return how long a class that takes `level` waits before it takes `found`."""
        return sum(self._delays_s[level:found])

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Return until when the class waits for a closer node; None takes this node."""
        if not self.concerns(pending):
            return None
        task_class, now_s, found = pending.task_class, state.view.now_s, int(pending.levels[node])
        level = self._levels.get(task_class.job, {}).get(task_class.id, _NEW)
        if found <= level.allowed:
            return None
        since_s = now_s if level.since_s is None else level.since_s
        until_s = since_s + self.delay_s(task_class, level.allowed, found)
        if now_s >= until_s:
            return None
        return model.Wait(task_class=task_class, job=pending.job, verdict=_PASSED_OVER[found], until_s=until_s)

    def waits(self, wait: model.Wait, state: CycleState) -> None:
        """Remember since when a class has been passed over."""
        if wait.verdict in _VERDICTS:
            level = self._levels[wait.job.id][wait.task_class.id]
            level.since_s = state.view.now_s if level.since_s is None else level.since_s

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Remember the level that a class took; it is not passed over any more."""
        pending = assignment.pending
        if self.concerns(pending):
            self._levels[pending.job.id][pending.task_class.id] = _Level(int(assignment.pick.distance))

    def observe(self, event: model.Event) -> None:
        """Forget jobs that are over."""
        if isinstance(event, model.Ended):
            self._levels.pop(event.job, None)


LEVEL = 4.0  # above the range of a score within -1..1: closeness comes first

_NEW = _Level()
_PASSED_OVER = [
    model.Verdict(
        code=model.Code.PATIENCE, message=f"the closest free node is {where} its input: it waits for a closer one"
    )
    for where in ("the node of", "on the host of", "in the rack of", "in another rack than")
]
_VERDICTS = frozenset(_PASSED_OVER)


def build(score: Score = LEAST_LOADED) -> Profile:
    """Return the profile `delay`."""
    delay = Delay(HADOOP_S)
    return Profile(
        name="delay",
        order=FairShare(),
        score=Closest(score, LEVEL),
        patience=delay,
        observers=(delay,),
        hooks=(delay,),
        sees_hosts=False,
    )
