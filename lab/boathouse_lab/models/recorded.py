"""Maps of MRJobs and tasks of Spark as they ran on real kubelets, beside neighbours that used CPU and disk.

`python -m benchmarks.task_recordings` wrote `recorded_tasks.csv`. The nodes were containers of one machine with two
cores, so each task's host is the whole machine, and all that it used beside the task is the task's neighbours.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boathouse_policies.ila import profiling
from boathouse_policies.ila.fitting import Samples

FILE = Path(__file__).with_name("recorded_tasks.csv")
CORES = 2
DISK_MB_PER_S = 200.0
"""What is taken for the disk's throughput; all predictors are told the same."""
_MB = 1e6


class RecordedTask(NamedTuple):
    """A map, or a Spark task that read input, that succeeded; one line of the file.

    Attributes:
        program: Its mapper, or its Spark application, by name.
        is_alone: Whether it was meant to have no neighbours.
        started_s: When it started, since the recording began.
        seconds: Its run time, without its waits.
        input_bytes: What it read.
        cpu_s: CPU time of it and its commands; of Spark, of its thread.
        spilled_bytes: What it wrote to the disk and read again.
        others_cpus: CPUs that were in use beside it, on average.
        others_read_bytes_per_s: What was read from the disk meanwhile.
        others_written_bytes_per_s: What was written to the disk meanwhile.
    """

    program: str
    is_alone: bool
    started_s: float
    seconds: float
    input_bytes: float
    cpu_s: float
    spilled_bytes: float
    others_cpus: float
    others_read_bytes_per_s: float
    others_written_bytes_per_s: float


@functools.cache
def tasks(file: Path = FILE) -> tuple[RecordedTask, ...]:
    """Return the recorded tasks in the order of their ends."""
    with file.open(encoding="utf-8", newline="") as opened:
        rows = [_row(fields) for fields in csv.DictReader(opened)]
    return tuple(sorted(rows, key=lambda row: row.started_s + row.seconds))


def _row(fields: dict[str, str]) -> RecordedTask:
    numbers = (float(fields[name]) for name in RecordedTask._fields[2:])
    return RecordedTask(fields["program"], fields["is_alone"] == "True", *numbers)


def write(rows: list[RecordedTask], file: Path = FILE) -> None:
    """Write tasks."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(RecordedTask._fields)
        writer.writerows(row[:2] + tuple(round(value, 3) for value in row[2:]) for row in rows)


def samples(rows: tuple[RecordedTask, ...]) -> Samples:
    """Return the slowdowns of the tasks that had neighbours, as ILA's profiler would have measured them.

    The run time without neighbours is the median of the tasks of the same program and size that had none.
    """
    alone: dict[tuple[str, int], list[RecordedTask]] = {}
    for row in rows:
        if row.is_alone:
            alone.setdefault(_key(row), []).append(row)
    usual = {key: float(np.median([row.seconds for row in own])) for key, own in alone.items()}
    found = [_sample(row, usual[_key(row)]) for row in rows if not row.is_alone and _key(row) in usual]
    return Samples.of_rows(found)


def _key(row: RecordedTask) -> tuple[str, int]:
    return row.program, round(row.input_bytes / (1 << 20))


def _sample(row: RecordedTask, alone_s: float) -> list[float]:
    """Return Table 2's metrics and the slowdown: nodes are of one host, so all others are in one place."""
    disk = DISK_MB_PER_S * _MB
    read, written = row.others_read_bytes_per_s / disk, row.others_written_bytes_per_s / disk
    system = [0.0, row.others_cpus / CORES, 0.0, 0.0, 0.0, read, written, min(read + written, 1.0)]
    own = profiling.measured({"cpu_s": row.cpu_s, "spilled_bytes": row.spilled_bytes}, alone_s, DISK_MB_PER_S)
    return [*system, *own, row.seconds / alone_s]
