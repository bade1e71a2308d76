"""A map attempt against the plain pipeline `mapper | sort` on the same file: CPU, elapsed time, and peak memory.

    python benchmarks/task_map.py [--mib 128] [--memory-mib 512] [--pairs 3]

The attempt is the task image's entry point with a file:// store: reading, mapper, partitioning, sorting within half of
the memory limit, writing data and index, commit. The pipeline is `mapper < file | LC_ALL=C sort -S BUFFER > out`: it
knows no partitions, checksums or counters.
Pairs alternate; the ratio printed is that of the medians (below 1: the attempt is cheaper).
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from boathouse_task import contract
from boathouse_task.contract import Split, TaskSpec, TaskType
from boathouse_task.environment import Environment

MIB = 1024 * 1024
# Both sides without it: a Python mapper would write line by line. The runtime drops it for commands anyway.
VARIABLES = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
WORD_COUNT = """
import sys
for line in sys.stdin:
    for word in line.split():
        print(word, 1, sep="\\t")
"""
SUM = """
import itertools, sys
rows = (line.rstrip("\\n").split("\\t") for line in sys.stdin)
for word, group in itertools.groupby(rows, key=lambda row: row[0]):
    print(word, sum(int(row[1]) for row in group), sep="\\t")
"""
IDENTITY = "import sys\nfor line in sys.stdin: sys.stdout.write(line)\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is mapped and how."""

    name: str
    data: str
    mapper: list[str]
    reduces: int
    combiner: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one run took."""

    cpu_s: float
    elapsed_s: float
    rss_mib: float


CASES = [
    Case(name="cat, 1 reduce", data="pairs", mapper=["cat"], reduces=1),
    Case(name="cat, 8 reduces", data="pairs", mapper=["cat"], reduces=8),
    Case(name="Python identity, 8 reduces", data="pairs", mapper=[sys.executable, "-c", IDENTITY], reduces=8),
    Case(name="Python word count, 2 reduces", data="words", mapper=[sys.executable, "-c", WORD_COUNT], reduces=2),
    Case(
        name="the same, combiner",
        data="words",
        mapper=[sys.executable, "-c", WORD_COUNT],
        reduces=2,
        combiner=[sys.executable, "-c", SUM],
    ),
]


def write_data(folder: Path, size_bytes: int) -> None:
    """`pairs`: 16 hex digits, TAB, 32 characters, all keys distinct. `words`: Zipf-like text, as books are."""
    generator = random.Random(7)  # noqa: S311 - data, not secrets
    value = "x" * 32
    with (folder / "pairs").open("w") as file:
        for _ in range(size_bytes // 50):
            file.write(f"{generator.getrandbits(64):016x}\t{value}\n")
    vocabulary = [f"word{number}" for number in range(30_000)]
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    with (folder / "words").open("w") as file:
        while file.tell() < size_bytes // 4:
            file.write("\n".join(" ".join(generator.choices(vocabulary, weights, k=10)) for _ in range(10_000)) + "\n")


def measure(command: Sequence[str], environment: dict[str, str]) -> Cost:
    """Runs a command; its CPU and memory with all its children, by wait4 and the children's own rusage."""
    before = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", _WATCH, *command], env=environment, stdout=subprocess.PIPE)
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{command} ended with status {process.returncode}")
    cpu, rss = (float(word) for word in out.split())
    return Cost(cpu_s=cpu, elapsed_s=time.monotonic() - before, rss_mib=rss / 1024)


_WATCH = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(status)
"""


def attempt(case: Case, folder: Path, memory_bytes: int) -> Cost:
    """Runs the case as a map attempt in a process of its own."""
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
        "import os, pathlib, sys; from boathouse_task import __main__, environment; import dataclasses;"
        "e = environment.from_variables(os.environ);"
        f"e = dataclasses.replace(e, work_path=pathlib.Path({str(folder / 'work')!r}),"
        f" termination_log_path=pathlib.Path({str(folder / 'log')!r}));"
        f"sys.exit(__main__.run_pod(os.environ[{contract.TASK_ENV!r}], e))"
    )
    variables = {contract.TASK_ENV: msgspec.json.encode(spec).decode(), contract.MEMORY_LIMIT_ENV: str(memory_bytes)}
    return measure([sys.executable, "-c", script], {**VARIABLES, **variables})


def pipeline(case: Case, folder: Path, memory_bytes: int) -> Cost:
    """Runs the case as `mapper | sort`, its combiner behind."""
    buffer = Environment(memory_limit_bytes=memory_bytes).sort_bytes
    sort = f"sort --parallel=1 -S{buffer}b -T '{folder}'"
    combiner = ' | "$0" -c "$SUM"' if case.combiner else ""
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in case.mapper)
    script = f"{quoted} < '{folder / case.data}' | {sort}{combiner} > '{folder / 'plain'}'"
    return measure(["sh", "-c", script, sys.executable], {**VARIABLES, "LC_ALL": "C", "SUM": SUM})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--mib", type=int, default=128, help="input of the identity cases; a quarter of it for word count"
    )
    parser.add_argument("--memory-mib", type=int, default=512, help="memory limit of the attempt")
    parser.add_argument("--pairs", type=int, default=3, help="alternating pairs of runs")
    parser.add_argument("--case", default="", help="only cases whose name has this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, options.mib * MIB)
        print(f"{options.mib} MiB, limit {options.memory_mib} MiB; median of {options.pairs}; ratio attempt / pipeline")
        print(f"{'case':32}{'CPU s':>16}{'ratio':>7}{'elapsed s':>16}{'ratio':>7}{'MB/s':>7}{'largest RSS MiB':>17}")
        for case in (case for case in CASES if options.case in case.name):
            report(case, folder, options.pairs, options.memory_mib * MIB)


def report(case: Case, folder: Path, pairs: int, memory_bytes: int) -> None:
    ours, plain = [], []
    for _ in range(pairs):
        ours.append(attempt(case, folder, memory_bytes))
        plain.append(pipeline(case, folder, memory_bytes))
    cpu, cpu_plain = (statistics.median(cost.cpu_s for cost in costs) for costs in (ours, plain))
    elapsed, elapsed_plain = (statistics.median(cost.elapsed_s for cost in costs) for costs in (ours, plain))
    rss = max(cost.rss_mib for cost in ours)
    rate = (folder / case.data).stat().st_size / elapsed / 1e6
    print(
        f"{case.name:32}{cpu:8.2f}{cpu_plain:8.2f}{cpu / cpu_plain:7.2f}{elapsed:8.2f}{elapsed_plain:8.2f}"
        f"{elapsed / elapsed_plain:7.2f}{rate:7.1f}{rss:17.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
