"""Common parts of the benchmarks of map attempts: the cases, their data, and the measurement of a run."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
    sums = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(vocabulary))))
    with (folder / "words").open("w") as file:
        while file.tell() < size_bytes // 4:
            file.write(
                "\n".join(" ".join(generator.choices(vocabulary, cum_weights=sums, k=10)) for _ in range(10_000)) + "\n"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run.

    Attributes:
        whole: from the start of its process to its end.
        alone: the attempt in it, where it tells; its memory is that of the whole.
    """

    whole: Cost
    alone: Cost | None = None


def measure(command: Sequence[str], environment: dict[str, str]) -> Measured:
    """Run a command; its CPU and memory with all its children, by wait4 and the children's own rusage.

    The attempt alone is what the last line of its output says: CPU and elapsed seconds.
    """
    before = time.monotonic()
    done = subprocess.run([sys.executable, "-c", _WATCH, *command], env=environment, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ended with status {done.returncode}: {done.stderr.decode()[-2000:]}")
    lines = done.stdout.decode().splitlines()
    cpu, rss = (float(word) for word in lines[-1].split())
    whole = Cost(cpu_s=cpu, elapsed_s=time.monotonic() - before, rss_mib=rss / 1024)
    if len(lines) == 1:
        return Measured(whole=whole)
    cpu, elapsed = (float(word) for word in lines[-2].split()[:2])
    return Measured(whole=whole, alone=Cost(cpu_s=cpu, elapsed_s=elapsed, rss_mib=whole.rss_mib))


_WATCH = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(status)
"""
