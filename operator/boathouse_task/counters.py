"""Counters by Hadoop's names, filled by several threads."""

import threading
from collections.abc import Iterable

from boathouse_task.contract import Counters, accumulate

TASK = "org.apache.hadoop.mapreduce.TaskCounter"
INPUT = "File Input Format Counters"
OUTPUT = "File Output Format Counters"
BOATHOUSE = "Boathouse"
DROPPED = "Counters dropped"
"""Counter in group Boathouse: number of the user's counters that were dropped."""

MAX_COUNTERS = 120
"""mapreduce.job.counters.max."""
_MAX_NAME, _MAX_GROUP = 64, 128
"""mapreduce.job.counters.counter.name.max and mapreduce.job.counters.group.name.max."""

MAP_INPUT_RECORDS = "Map input records"
MAP_OUTPUT_RECORDS = "Map output records"
MAP_OUTPUT_BYTES = "Map output bytes"
MAP_OUTPUT_MATERIALIZED_BYTES = "Map output materialized bytes"
COMBINE_INPUT_RECORDS = "Combine input records"
COMBINE_OUTPUT_RECORDS = "Combine output records"
REDUCE_INPUT_GROUPS = "Reduce input groups"
REDUCE_INPUT_RECORDS = "Reduce input records"
REDUCE_OUTPUT_RECORDS = "Reduce output records"
REDUCE_SHUFFLE_BYTES = "Reduce shuffle bytes"
SHUFFLED_MAPS = "Shuffled Maps"
SPILLED_RECORDS = "Spilled Records"
CPU_MILLISECONDS = "CPU time spent (ms)"
BYTES_READ = "Bytes Read"
BYTES_WRITTEN = "Bytes Written"
SPILLED_BYTES = "Spilled bytes"
SPILLS = "Spills"
SPILL_MILLISECONDS = "Spill milliseconds"
PEAK_MEMORY_BYTES = "Peak memory bytes"
MAP_FUNCTION_MILLISECONDS = "Map function milliseconds"
REDUCE_FUNCTION_MILLISECONDS = "Reduce function milliseconds"
SAMPLED_BYTES = "Sampled bytes"
SUSPENDED_MILLISECONDS = "Suspended milliseconds"
GIVEN_UP = "Tasks given up"


class CounterSet:
    """A task's counters and its status."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Counters = {}
        self._users = 0
        self.status = ""

    def add(self, name: str, amount: int, group: str = TASK) -> None:
        """Add to one of Hadoop's or Boathouse's counters."""
        with self._lock:
            accumulate(self._values, group, name, amount)

    def add_users(self, group: str, name: str, amount: int) -> None:
        """Add to a counter of the user's command. Beyond `MAX_COUNTERS`, new counters are only counted as dropped."""
        group, name = group[:_MAX_GROUP], name[:_MAX_NAME]
        with self._lock:
            if name not in self._values.get(group, {}):
                if self._users >= MAX_COUNTERS:
                    group, name, amount = BOATHOUSE, DROPPED, 1
                self._users += 1
        self.add(name, amount, group)

    def set_status(self, message: str) -> None:
        """Store the command's last status."""
        self.status = message[:200]

    def get(self, name: str, group: str = TASK) -> int:
        """Return a counter's value so far."""
        with self._lock:
            return self._values.get(group, {}).get(name, 0)

    def values(self) -> Counters:
        """Return a copy of all counters."""
        with self._lock:
            return {group: dict(counters) for group, counters in self._values.items()}


def total(sets: Iterable[Counters]) -> Counters:
    """Return the sums (of some the maximum: `contract.MAXIMA`) over several tasks, within 64 bits."""
    sums: Counters = {}
    for counters in sets:
        for group, values in counters.items():
            for name, value in values.items():
                accumulate(sums, group, name, value)
    return sums
