"""Simulated tasks per CPU-second, and how the cost grows with the cluster.

    python benchmarks/simulate.py [--largest N] [--profile NAME ...]

n jobs on n nodes drawn from Table 2 of the YARN-ME paper (uniform, the middle of the ranges, penalty 1.5), with and
without heartbeats. The growth is the exponent of CPU time over tasks between one size and the next. CPU time of this
process; a busy machine inflates it.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np

from boathouse_sim import simulation, table2

SIZES = (20, 100, 300, 1000, 3000)
MOST_WITH_HEARTBEATS = 300
PROFILES = ("fifo", "fair", "yarn", "yarn-me")


def main() -> None:
    """Print one line for each profile and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--largest", type=int, default=300, help="largest number of jobs and nodes (default: 300)")
    parser.add_argument("--profile", nargs="+", default=PROFILES, choices=simulation.names())
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    print(line("profile", "heartbeat", "n", "tasks", "CPU s", "tasks/CPU-s", "events/CPU-s", "growth"))
    for name, heartbeat_s in itertools.product(arguments.profile, (None, 1.0)):
        before: tuple[int, float] | None = None
        for size in SIZES:
            if size > arguments.largest or (heartbeat_s and size > MOST_WITH_HEARTBEATS):
                continue
            workload = table2.Table2().draw(size, size, np.random.default_rng(arguments.seed))
            found = simulation.simulate(workload, name, heartbeat_s=heartbeat_s)
            growth = "" if before is None else f"{exponent(before, (found.tasks, found.cpu_s)):.2f}"
            before = (found.tasks, found.cpu_s)
            figures = (f"{found.cpu_s:.2f}", f"{found.tasks / found.cpu_s:,.0f}", f"{found.events / found.cpu_s:,.0f}")
            print(
                line(name, f"{heartbeat_s:g} s" if heartbeat_s else "-", size, found.tasks, *figures, growth),
                flush=True,
            )


def exponent(before: tuple[int, float], after: tuple[int, float]) -> float:
    """The exponent of CPU time over tasks between two measurements of (tasks, CPU seconds)."""
    return math.log(after[1] / before[1]) / math.log(after[0] / before[0])


def line(*cells: object) -> str:
    """Columns."""
    return " ".join(f"{cell!s:>12}" for cell in cells)


if __name__ == "__main__":
    main()
