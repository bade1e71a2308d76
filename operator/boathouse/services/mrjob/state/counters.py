"""Sums of counters, bounded so that a status stays small."""

from collections.abc import Mapping

from boathouse.services.mrjob.state.job_state import Counters
from boathouse_task.contract import clamp

MAX_COUNTERS = 120
"""As mapreduce.job.counters.max."""
MAX_NAME = 64
GROUP = "Boathouse"
DROPPED = "Counters dropped"


def add(sums: Counters, more: Mapping[str, Mapping[str, int]]) -> None:
    """Add one task's counters to `sums`, in place: sums of 64 bits; names beyond the bound are counted as dropped."""
    known = sum(len(each) for each in sums.values())
    for group, values in sorted(more.items()):
        for name, value in sorted(values.items()):
            here = sums.get(group[:MAX_NAME], {})
            if name[:MAX_NAME] in here:
                here[name[:MAX_NAME]] = clamp(here[name[:MAX_NAME]] + value)
            elif known < MAX_COUNTERS:
                sums.setdefault(group[:MAX_NAME], {})[name[:MAX_NAME]] = clamp(value)
                known += 1
            else:
                dropped = sums.setdefault(GROUP, {})
                dropped[DROPPED] = clamp(dropped.get(DROPPED, 0) + 1)
