"""Traces of SWIM, the Statistical Workload Injector for MapReduce (Chen et al., University of California, Berkeley)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS = 6


class TraceError(ValueError):
    """A trace cannot be read; the message names the file, the line and what is wrong."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SwimJob:
    """One line of a SWIM trace."""

    name: str
    submit_s: float
    map_input_bytes: int
    shuffle_bytes: int
    reduce_output_bytes: int


def read_swim(path: Path) -> list[SwimJob]:
    """Read a trace: tab-separated, no header, in order of submission.

    Args:
        path: Columns are name, submission (s), gap since the one before (s), map input, shuffle, reduce output (bytes).

    Raises:
        TraceError: A line has other columns or a value that is no number, or time runs backwards.
        OSError: The file cannot be read.
    """
    jobs: list[SwimJob] = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if not line.strip():
            continue
        job = _parse(line, f"{path.name}, line {number}")
        if jobs and job.submit_s < jobs[-1].submit_s:
            raise TraceError(
                f"{path.name}, line {number}: submitted before the line above it; sort by the second column"
            )
        jobs.append(job)
    if not jobs:
        raise TraceError(f"{path.name}: holds no jobs")
    return jobs


def _parse(line: str, where: str) -> SwimJob:
    fields = line.split("\t")
    if len(fields) < _COLUMNS:
        raise TraceError(f"{where}: {len(fields)} tab-separated columns, a SWIM trace has {_COLUMNS}")
    try:
        submit_s, sizes = float(fields[1]), [int(field) for field in fields[3:_COLUMNS]]
    except ValueError as error:
        raise TraceError(f"{where}: {error}") from None
    if submit_s < 0 or min(sizes) < 0:
        raise TraceError(f"{where}: times and sizes are not negative")
    return SwimJob(
        name=fields[0],
        submit_s=submit_s,
        map_input_bytes=sizes[0],
        shuffle_bytes=sizes[1],
        reduce_output_bytes=sizes[2],
    )
