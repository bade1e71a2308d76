"""LASM: adaptive delay scheduling (4.2, eq. 4; 4.4, Algorithm 2).

Node, server, rack and off-rack are the four levels. The wait is in proportion to the task's input:

    T_ij = F_j * T_i / F_b, and 0 where F_j / F_b <= 0.01

A class accepts a node whose closest task is within L_j, or once it has waited for the sum of T_lj from L_j to below
that task's level; then L_j becomes that level.

Readings: W_j is reset on acceptance, which the listing leaves out. Deviations: there, nodes offer themselves one after
the other; here all free nodes are seen at once and the closest is taken, so a class waits only where none is close
enough. W_j is the time since the class was first passed over. A class without input in blocks has nothing to wait for.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.framework.questions import Observer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework import PendingClass
    from boathouse_policies.ila.config import Config


@dataclasses.dataclass(slots=True)
class Waited:
    """Of one class.

    Attributes:
        level: L_j, the level of the task accepted last.
        since_s: Since when it has been passed over; None if it has not.
    """

    level: int = 0
    since_s: float | None = None


class AdaptiveDelay(Observer):
    """Algorithm 2 for all classes.

    Args:
        config: The constants.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._delays_s = (config.node_delay_s, config.delay_s, config.delay_s)
        self._waited: dict[model.ClassId, Waited] = {}
        self._read_bytes: dict[model.ClassId, float] = {}
        self._of_job: dict[model.JobId, tuple[model.ClassId, ...]] = {}

    def input_share(self, one: model.TaskClass) -> float:
        """F_j / F_b, 1 at most: a task's input as a share of a block; a whole block where nothing is known."""
        told = one.estimates.input_bytes()
        size = self._read_bytes.get(one.id) if told is None else told
        return 1.0 if size is None else min(size / self._config.block_bytes, 1.0)

    def delay_s(self, one: model.TaskClass, level: int, found: int) -> float:
        """How long a class that accepts `level` waits before it accepts `found`, eq. 4 summed up."""
        share = self.input_share(one)
        if share <= self._config.least_input_share:
            return 0.0
        return share * sum(self._delays_s[level:found])

    def until_s(self, pending: PendingClass, found: model.Distance, now_s: float) -> float | None:
        """Algorithm 2: until when the class waits rather than take a task at this level; None to take it.

        Args:
            pending: The class.
            found: L_jmin, the level of the closest task on the closest node.
            now_s: The cycle's time.
        """
        one = pending.task_class
        if not pending.queued.pool.located or self.input_share(one) <= self._config.least_input_share:
            return None
        waited = self._waited.get(one.id) or self._waited.setdefault(one.id, Waited())
        if found <= waited.level:
            return self._accepted(waited, found)
        if waited.since_s is None:
            waited.since_s = now_s
        until_s = waited.since_s + self.delay_s(one, waited.level, int(found))
        return until_s if now_s < until_s else self._accepted(waited, found)

    @staticmethod
    def _accepted(waited: Waited, found: model.Distance) -> None:
        waited.level, waited.since_s = int(found), None

    def observe(self, event: model.Event) -> None:
        """Learn how much tasks read, and forget jobs that are over."""
        match event:
            case model.Measured():  # the most frequent first
                pass
            case model.Finished():
                if "read_bytes" in event.counters:
                    read = event.counters["read_bytes"] + event.counters.get("remote_bytes", 0.0)
                    self._read_bytes[event.task_class] = read
            case model.Submitted():
                self._of_job[event.job.id] = tuple(one.id for one in event.classes)
            case model.Ended():
                for one in self._of_job.pop(event.job, ()):
                    self._waited.pop(one, None)
                    self._read_bytes.pop(one, None)
            case _:
                pass

    def dump(self) -> Mapping[str, Any]:
        """Nothing: waits are seconds long, and begin anew after a restart."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing."""
