"""LASM: close nodes first, and adaptive delay scheduling (4.2, eq. 4; 4.4, Algorithm 2).

Node, server, rack and off-rack are the four levels. The wait is in proportion to the task's input:

    T_ij = F_j * T_i / F_b, and 0 where F_j / F_b <= 0.01

A class accepts a node whose closest task is within L_j, or once it has waited for the sum of T_lj from L_j to below
that task's level; then L_j becomes that level.

Readings: W_j is reset on acceptance, which the listing leaves out. Deviations: there, nodes offer themselves one after
the other; here all free nodes are seen at once and the closest is taken, so a class waits only where none is close
enough. W_j is the time since the class was first passed over. A class without input in blocks has nothing to wait for.
"""

import collections

from boathouse_policies import model
from boathouse_policies.baselines.delay import Delay
from boathouse_policies.framework import PendingClass
from boathouse_policies.ila.config import Config
from boathouse_policies.ila.profiling import STAGES


class AdaptiveDelay(Delay):
    """Algorithm 2 for all classes: the last word on a node (Algorithm 3, lines 10 to 15)."""

    def __init__(self, config: Config) -> None:
        super().__init__((config.node_delay_s, config.delay_s, config.delay_s))
        self._config = config
        self._read_bytes: dict[model.JobId, dict[model.ClassId, float]] = collections.defaultdict(dict)

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether a class may wait: maps and reducers with input in blocks."""
        return pending.task_class.stage in STAGES and pending.queued.pool.located

    def input_share(self, task_class: model.TaskClass) -> float:
        """Return F_j / F_b: a task's input, or what the last one read, as a share of a block; at most 1."""
        size: float | None = task_class.estimates.input_bytes()
        if size is None:
            size = self._read_bytes.get(task_class.job, {}).get(task_class.id, self._config.block_bytes)
        return min(size / self._config.block_bytes, 1.0)

    def delay_s(self, task_class: model.TaskClass, level: int, found: int) -> float:
        """Return how long a class that takes `level` waits before it takes `found`, eq. 4 summed up."""
        share = self.input_share(task_class)
        return share * super().delay_s(task_class, level, found) if share > self._config.least_input_share else 0.0

    def observe(self, event: model.Event) -> None:
        """Learn how much tasks read, and forget jobs that are over."""
        if isinstance(event, model.Finished):
            if "read_bytes" in event.counters:
                read_bytes = event.counters["read_bytes"] + event.counters.get("remote_bytes", 0.0)
                self._read_bytes[event.job][event.task_class] = read_bytes
        elif isinstance(event, model.Ended):
            self._read_bytes.pop(event.job, None)
            super().observe(event)


LEVEL = 1e6  # above any slowdown: closeness comes first
