"""`python -m boathouse_e2e.times`: show where the time of the tests went, by file and phase, CPU and waiting apart."""

from __future__ import annotations

import argparse
import collections
import pathlib
from typing import TYPE_CHECKING

from boathouse_e2e import paths, results

if TYPE_CHECKING:
    from collections.abc import Sequence

REPORTS = paths.REPOSITORY / "build" / "reports"
COLUMNS = ("tests", "all", "setup", "call", "teardown", "CPU of pytest", "waiting", "CPU of machine")


def table(rows: Sequence[results.Row], by: str, most: int) -> list[str]:
    """Return the lines of a table in seconds, the longest rows first.

    The CPU of pytest is that of its process and of its ended children. Waiting is the rest of the time. The CPU of the
    machine includes servers and other tests.
    """
    sums: dict[str, dict[str, float]] = collections.defaultdict(lambda: collections.defaultdict(float))
    for row in rows:
        if row.phase == results.SESSION:
            continue
        for name in (_group(row.test, by), "all of them"):
            took = sums[name]
            took["tests"] += row.phase == "call"
            took[row.phase] += row.wall_s
            took["all"] += row.wall_s
            took["CPU of pytest"] += row.own_cpu_s
            took["waiting"] += row.wall_s - row.own_cpu_s
            took["CPU of machine"] += row.machine_cpu_s
    lines = ["  ".join(f"{column:>{_width(column)}}" for column in COLUMNS)]
    for name, took in sorted(sums.items(), key=lambda item: -item[1]["all"])[: most + 1]:
        lines.append("  ".join(f"{took[column]:>{_width(column)}.0f}" for column in COLUMNS) + f"  {name}")
    return lines


def _width(column: str) -> int:
    return max(8, len(column))


def _group(test: str, by: str) -> str:
    file = test.partition("::")[0]
    return {"test": test, "file": file, "folder": file.rpartition("/")[0]}[by]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each file of results."""
    parser = argparse.ArgumentParser(prog="python -m boathouse_e2e.times", description=__doc__)
    parser.add_argument(
        "results", nargs="*", type=pathlib.Path, help="files of results (default: all of build/reports)"
    )
    parser.add_argument("--by", choices=["folder", "file", "test"], default="file")
    parser.add_argument("--most", type=int, default=40, help="rows of each table (default: 40)")
    given = parser.parse_args(arguments)
    for path in given.results or sorted(REPORTS.glob("*.jsonl")):
        rows = results.read(path)
        runs = [row for row in rows if row.phase == results.SESSION]
        print(f"\n{path.stem}: {sum(row.wall_s for row in runs):.0f} s from start to end, seconds of its tests:")
        print("\n".join(table(rows, given.by, given.most)))


if __name__ == "__main__":
    main()
