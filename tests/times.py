"""Show the seconds of the tests by file and phase: `python -m tests.times [--by test] [REPORT.times.jsonl ...]`."""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import sys

REPORTS = pathlib.Path(__file__).parents[1] / "build" / "reports"
PHASES = ("setup", "call", "teardown")


def main() -> None:
    """Print the table of the latest runs, the longest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="*", type=pathlib.Path, help="default: all of build/reports")
    parser.add_argument("--by", choices=["folder", "file", "test"], default="file")
    parser.add_argument("--most", type=int, default=40, help="rows for each report (default: 40)")
    arguments = parser.parse_args()
    for report in arguments.reports or sorted(REPORTS.glob("*.times.jsonl")):
        table(report, arguments.by, arguments.most)


def table(report: pathlib.Path, by: str, most: int) -> None:
    """Print the rows of a run: seconds of each phase, CPU seconds of pytest's process, of the machine, and waiting."""
    sums: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for line in report.read_text().splitlines():
        row = json.loads(line)
        for name in (_group(row["test"], by), "all"):
            sums[name][row["phase"]] += row["wall_s"]
            sums[name]["tests"] += row["phase"] == "call"
            for column in ("wall_s", "own_cpu_s", "machine_cpu_s"):
                sums[name][column] += row[column]
    print(f"\n{report.name}: seconds")
    columns = ("tests", "all", *PHASES, "CPU of pytest", "CPU of machine", "waiting")
    print("  ".join(f"{column:>{max(8, len(column))}}" for column in columns), "", by)
    for name, took in sorted(sums.items(), key=lambda item: -item[1]["wall_s"])[: most + 1]:
        cells = [took["tests"], took["wall_s"], *(took[phase] for phase in PHASES)]
        cells += [took["own_cpu_s"], took["machine_cpu_s"], took["wall_s"] - took["own_cpu_s"]]
        print(
            "  ".join(f"{cell:>{max(8, len(column))}.0f}" for cell, column in zip(cells, columns, strict=True)),
            "",
            name,
        )


def _group(test: str, by: str) -> str:
    file = test.partition("::")[0]
    return {"test": test, "file": file, "folder": file.rpartition("/")[0]}[by]


if __name__ == "__main__":
    sys.exit(main())
