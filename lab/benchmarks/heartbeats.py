"""CPU time of simulations under heartbeats, against a plain simulator with the same decisions in the same run.

    python -m benchmarks.heartbeats [--sizes 20 100] [--workload FILE ...] [--profile NAME ...] [--pairs 3]

The workloads are n jobs on n nodes drawn from Table 2 of the YARN-ME paper (uniform, the middle of the ranges), and
files of the format `neutral-cluster-workload/1`; heartbeats come each second. The baseline (`plain_heartbeats.py`)
sorts the jobs at each heartbeat of a node and loops over them. It makes the very same decisions, which is checked: all
jobs end at the same millisecond. `ratio` is our CPU time over the baseline's, the median, the least and the most of the
alternating pairs. `of yarn` is a profile's CPU time over that of `yarn`, both medians.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.plain_heartbeats import PROFILES, PlainHeartbeats
from boathouse_lab import table2
from boathouse_sim import neutral, simulation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.workload import Workload

HEARTBEAT_S = 1.0
YARN = "yarn"


def ours(workload: Workload, profile: str) -> tuple[float, Sequence[float]]:
    """Simulate with Boathouse: (CPU seconds, job times in the order of the workload)."""
    found = simulation.simulate(workload, profile, heartbeat_s=HEARTBEAT_S)
    return found.cpu_s, found.job_times_s


def baseline(workload: Workload, profile: str) -> tuple[float, Sequence[float]]:
    """Simulate with the baseline."""
    start = time.process_time()
    plain = PlainHeartbeats(workload, profile)
    plain.run()
    return time.process_time() - start, tuple((job.ended_ms - job.arrival_ms) / 1000 for job in plain.jobs)


def pair(workload: Workload, profile: str, *, ours_first: bool) -> tuple[float, float]:
    """CPU seconds of both.

    Raises:
        SystemExit: A job ended at another time.
    """
    found = {}
    for run in (ours, baseline) if ours_first else (baseline, ours):
        gc.collect()  # what the run before left
        found[run] = run(workload, profile)
    (our_s, our_times), (plain_s, plain_times) = found[ours], found[baseline]
    if our_times != plain_times:
        raise SystemExit(f"{profile} and the baseline decide differently on {workload.name}: one of them is wrong")
    return our_s, plain_s


def measure(workload: Workload, profiles: Sequence[str], pairs: int) -> None:
    """Print a line for each profile."""
    seconds: dict[str, float] = {}
    for profile in profiles:
        found = [pair(workload, profile, ours_first=i % 2 == 0) for i in range(pairs)]
        ratios = [our_s / plain_s for our_s, plain_s in found]
        our_s, plain_s = (statistics.median(column) for column in zip(*found, strict=True))
        seconds[profile] = our_s
        of_yarn = f"{our_s / seconds[YARN]:.2f}" if YARN in seconds else "-"
        spread = f"{min(ratios):.2f}-{max(ratios):.2f}"
        figures = (f"{our_s:.2f}", f"{plain_s:.2f}", f"{statistics.median(ratios):.2f}", spread, of_yarn)
        print(line(workload.name, profile, f"{workload.tasks:,}", *figures), flush=True)


def line(workload: str, profile: str, *cells: str) -> str:
    """Columns."""
    return f"{workload:<26} {profile:<20}" + "".join(f"{cell:>12}" for cell in cells)


def main() -> None:
    """Print a line for each workload and profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", nargs="*", type=int, default=[20, 100], help="jobs and nodes (default: 20 100)")
    parser.add_argument(
        "--workload",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="workload files like those in `data/workloads`",
    )
    parser.add_argument("--profile", nargs="+", default=PROFILES, choices=PROFILES, help="profiles to simulate")
    parser.add_argument("--pairs", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    drawn = [table2.Table2().draw(size, size, np.random.default_rng(arguments.seed)) for size in arguments.sizes]
    profiles = sorted(arguments.profile, key=lambda name: name != YARN)  # the others are compared with it
    print(line("workload", "profile", "tasks", "CPU s", "baseline", "ratio", "spread", "of yarn"))
    for workload in [*drawn, *map(neutral.read_neutral, arguments.workload)]:
        measure(workload, profiles, arguments.pairs)


if __name__ == "__main__":
    main()
