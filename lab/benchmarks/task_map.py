"""A map attempt against another on the same file: CPU, elapsed time, and peak memory.

    python -m benchmarks.task_map [--against pipeline|hadoop] [--mib 128] [--memory-mib 512] [--pairs 3]

The attempt is the task image's entry point with a file:// store: reading, mapper, partitioning, sorting within half of
the memory limit, writing data and index, commit.

`pipeline` is `mapper < file | LC_ALL=C sort -S BUFFER > out`: it knows no partitions, checksums or counters.
`hadoop` is the MapTask of Hadoop Streaming with the same command, partitions and sort buffer, in a Java machine of its
own whose heap is the memory limit: no job client, application master or shuffle. It needs Java 17 or newer with its
compiler, and Maven, and fetches some 60 MB once. Both are then told twice: the attempt alone (from the start of the
task in a process that is up, to its end), and with the start of Python and of Java.

Pairs alternate; the ratio printed is that of the medians (below 1: the attempt is cheaper).
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.map_cases import CASES, MIB, SUM, VARIABLES, Case, Cost, Measured, measure, write_data
from boathouse_e2e.errors import ClusterError
from boathouse_task import contract
from boathouse_task.contract import Split, TaskSpec, TaskType
from boathouse_task.environment import Environment

Run = Callable[[Case, Path, int], Measured]


def attempt(case: Case, folder: Path, memory_bytes: int) -> Measured:
    """Run the case as a map attempt in a process of its own."""
    data = folder / case.data
    size = data.stat().st_size
    shutil.rmtree(folder / "work", ignore_errors=True)
    (folder / "work").mkdir()
    spec = TaskSpec(
        job_uid="b", job_name="bench", namespace="bench", task_type=TaskType.MAP, output_url=f"file://{folder}/out",
        work_url=f"file://{folder}/work/out", maps=1, reduces=case.reduces, mapper=case.mapper, combiner=case.combiner,
        split=Split(url=f"file://{data}", offset_bytes=0, length_bytes=size, size_bytes=size),
    )  # fmt: skip
    script = (
        "import dataclasses, os, pathlib, sys, time; from boathouse_task import __main__, environment;"
        "e = environment.from_variables(os.environ);"
        f"e = dataclasses.replace(e, work_path=pathlib.Path({str(folder / 'work')!r}),"
        f" termination_log_path=pathlib.Path({str(folder / 'log')!r}));"
        "cpu, before = sum(os.times()[:4]), time.monotonic();"
        f"code = __main__.run_pod(os.environ[{contract.TASK_ENV!r}], e);"
        "print(); print(sum(os.times()[:4]) - cpu, time.monotonic() - before); sys.exit(code)"
    )
    variables = {contract.TASK_ENV: msgspec.json.encode(spec).decode(), contract.MEMORY_LIMIT_ENV: str(memory_bytes)}
    return measure([sys.executable, "-c", script], {**VARIABLES, **variables})


def pipeline(case: Case, folder: Path, memory_bytes: int) -> Measured:
    """Run the case as `mapper | sort`, its combiner behind."""
    buffer = Environment(memory_limit_bytes=memory_bytes).sort_bytes
    sort = f"sort --parallel=1 -S{buffer}b -T '{folder}'"
    combiner = ' | "$0" -c "$SUM"' if case.combiner else ""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in case.mapper)
    script = f"{quoted} < '{folder / case.data}' | {sort}{combiner} > '{folder / 'plain'}'"
    return measure(["sh", "-c", script, sys.executable], {**VARIABLES, "LC_ALL": "C", "SUM": SUM})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", choices=("pipeline", "hadoop"), default="pipeline", help="(default %(default)s)")
    parser.add_argument(
        "--mib", type=int, default=128, help="MiB of input of the identity cases; word count has a quarter of it"
    )
    parser.add_argument("--memory-mib", type=int, default=512, help="memory limit of the attempt in MiB")
    parser.add_argument("--pairs", type=int, default=3, help="alternating pairs of runs")
    parser.add_argument("--case", default="", help="run only cases whose name contains this")
    options = parser.parse_args()
    other = pipeline if options.against == "pipeline" else _hadoop()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, options.mib * MIB)
        print(
            f"{options.mib} MiB, limit {options.memory_mib} MiB; medians of {options.pairs}: the attempt, "
            f"{options.against}, ratio; largest RSS of one process; load {os.getloadavg()[0]:.0f}"
        )
        print(f"{'case':44}{'CPU s':>16}{'ratio':>7}{'elapsed s':>16}{'ratio':>7}{'RSS MiB':>12}")
        for case in (case for case in CASES if options.case in case.name):
            report(case, folder, options.pairs, options.memory_mib * MIB, other)


def _hadoop() -> Run:
    """Hadoop's side, fetched and compiled; says what is missing, if so."""
    from benchmarks import hadoop_map

    try:
        return hadoop_map.prepare().attempt
    except ClusterError as error:
        raise SystemExit(f"task_map.py: {error}") from error


def report(case: Case, folder: Path, pairs: int, memory_bytes: int, other: Run) -> None:
    """Run the pairs and print a row for the whole, and one for the attempt alone where both tell."""
    ours, theirs = [], []
    for _ in range(pairs):
        ours.append(attempt(case, folder, memory_bytes))
        theirs.append(other(case, folder, memory_bytes))
    alone = [(mine.alone, their.alone) for mine, their in zip(ours, theirs, strict=True)]
    if all(their is not None for _, their in alone):
        row(f"{case.name}, alone", [mine for mine, _ in alone if mine], [their for _, their in alone if their])
        row(
            f"{case.name}, with its start",
            [measurement.whole for measurement in ours],
            [measurement.whole for measurement in theirs],
        )
    else:
        row(case.name, [measurement.whole for measurement in ours], [measurement.whole for measurement in theirs])


def row(name: str, ours: Sequence[Cost], theirs: Sequence[Cost]) -> None:
    """Print medians, and the ratio of the medians."""
    cpu, their_cpu = (statistics.median(cost.cpu_s for cost in costs) for costs in (ours, theirs))
    elapsed, their_elapsed = (statistics.median(cost.elapsed_s for cost in costs) for costs in (ours, theirs))
    rss, their_rss = (max(cost.rss_mib for cost in costs) for costs in (ours, theirs))
    print(
        f"{name:44}{cpu:8.2f}{their_cpu:8.2f}{cpu / their_cpu:7.2f}{elapsed:8.2f}{their_elapsed:8.2f}"
        f"{elapsed / their_elapsed:7.2f}{rss:6.0f}{their_rss:6.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
