"""Simulated tasks per CPU-second, how the cost grows with the cluster, and how a plain simulator of loops compares.

    python -m benchmarks.simulate [--quick | --huge] [--profile NAME ...]

n jobs on n nodes drawn from Table 2 of the YARN-ME paper (uniform, the middle of the ranges, penalty 1.5). The growth
is the exponent of CPU time over tasks between one size and the next: 1 is linear. The baseline, `loops`, is what one
would write first: at each event all waiting jobs are sorted by the same key, and every node is tried for each until one
fits. It makes the very same decisions as `fifo` and `fair`, which is checked where it runs to its end; where it is too
slow it is stopped, and its rate until then counts (the cheap part, before the cluster is full). CPU time of this
process; a busy machine inflates it, which the ratio and the last line show.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab import table2
from boathouse_sim import simulation

if TYPE_CHECKING:
    from boathouse_sim.results import Outcome
    from boathouse_sim.workload import Workload

MOST_WITH_HEARTBEATS = 300
RUNS = (("fifo", None), ("fair", None), ("yarn", 1.0), ("yarn-me", None), ("yarn-me", 1.0))
LOOPS = 3_000_000


@dataclasses.dataclass(slots=True)
class PlainJob:
    """A job of the baseline."""

    arrival_ms: int
    duration_ms: int
    cpu: float
    mem: int
    left: int
    unfinished: int
    holds: int = 0
    ended_ms: int = 0


class Loops:
    """The baseline: plain objects and nested loops. Jobs of one phase on equal nodes."""

    def __init__(self, workload: Workload, profile: str) -> None:
        cluster = workload.cluster
        self.is_fair = profile == "fair"
        self.inverse = 1 / (cluster.node_cores * 1000), 1 / cluster.node_mem_mb
        self.totals = 1 / (cluster.node_cores * 1000 * cluster.nodes), 1 / (cluster.node_mem_mb * cluster.nodes)
        self.free = [[cluster.node_cores * 1000, cluster.node_mem_mb] for _ in range(cluster.nodes)]
        self.jobs = []
        for spec in workload.jobs:
            (phase,), tasks = spec.phases, spec.phases[0].tasks
            job = PlainJob(spec.submit_ms or 0, phase.duration_ms, phase.cores * 1000, phase.mem_ideal_mb, tasks, tasks)
            self.jobs.append(job)
        self.tasks = 0

    def run(self, most_s: float) -> bool:
        """To the end, or until that much CPU time is used; whether it came to the end."""
        start = time.process_time()
        events = [(job.arrival_ms, 1, i, i, -1) for i, job in enumerate(self.jobs)]
        heapq.heapify(events)
        waiting: list[int] = []
        while events:
            now_ms, _, _, i, node = heapq.heappop(events)
            job = self.jobs[i]
            if node < 0:
                waiting.append(i)
            else:
                self.shift(job, node, -1)
                job.ended_ms = now_ms
            if events and events[0][0] == now_ms:
                continue
            while (found := self.next(waiting)) is not None:
                i, node = found
                self.shift(self.jobs[i], node, +1)
                self.tasks += 1
                heapq.heappush(events, (now_ms + self.jobs[i].duration_ms, 0, self.tasks, i, node))
                if time.process_time() - start > most_s:
                    return False
            waiting = [i for i in waiting if self.jobs[i].left]
        return True

    def shift(self, job: PlainJob, node: int, step: int) -> None:
        """Take the room of a task, or give it back."""
        self.free[node][0] -= step * job.cpu
        self.free[node][1] -= step * job.mem
        job.holds += step
        job.left -= step > 0

    def next(self, waiting: list[int]) -> tuple[int, int] | None:
        """Return the first job in the order of which a task fits, and the emptiest node that it fits."""
        for i in sorted(waiting, key=self.key):
            job = self.jobs[i]
            node = self.best(job) if job.left else None
            if node is not None:
                return i, node
        return None

    def key(self, i: int) -> tuple[float, int, int]:
        """Return the sort key of a job; the least is first."""
        job = self.jobs[i]
        share = max(job.holds * job.cpu * self.totals[0], job.holds * job.mem * self.totals[1])
        return (share if self.is_fair else 0.0, job.arrival_ms, i)

    def best(self, job: PlainJob) -> int | None:
        """Return the node with the largest free share, the first of equals."""
        best, most = None, -math.inf
        for node, (cpu, mem) in enumerate(self.free):
            if cpu >= job.cpu and mem >= job.mem:
                score = (cpu - job.cpu) * self.inverse[0] + (mem - job.mem) * self.inverse[1]
                if score > most:
                    best, most = node, score
        return best


def loops_rate(workload: Workload, profile: str, ours: Outcome, most_s: float) -> float:
    """Tasks per CPU-second of the baseline.

    Raises:
        SystemExit: It ended with other job times than ours.
    """
    loops, start = Loops(workload, profile), time.process_time()
    if loops.run(most_s):
        times = tuple((job.ended_ms - job.arrival_ms) / 1000 for job in loops.jobs)
        if times != ours.job_times_s:
            raise SystemExit(
                f"{profile} and the plain loops decide differently on {workload.name}: one of them is wrong"
            )
    return loops.tasks / (time.process_time() - start)


def main() -> None:
    """Print one line for each profile and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="20 and 60 jobs and nodes, which takes seconds")
    parser.add_argument("--huge", action="store_true", help="also 3,000 jobs and nodes, without heartbeats")
    parser.add_argument("--profile", nargs="+", choices=simulation.names(), help="profiles to simulate")
    parser.add_argument(
        "--loops-most-s", type=float, default=30.0, help="seconds after which the baseline is stopped (default: 30)"
    )
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    sizes = (20, 60) if arguments.quick else (100, 1000, 3000) if arguments.huge else (100, 1000)
    print(line("profile", "heartbeat", "n", "tasks", "CPU s", "tasks/CPU-s", "loops", "ratio", "growth"))
    wanted = arguments.profile or [name for name, _ in RUNS]
    for name, heartbeat_s in [run for run in RUNS if run[0] in wanted] + [
        (name, None) for name in wanted if all(name != run[0] for run in RUNS)
    ]:
        measure(name, heartbeat_s, sizes, arguments.seed, arguments.loops_most_s)
    start = time.process_time()
    for _ in range(LOOPS):
        pass
    print(
        f"calibration: {LOOPS / (time.process_time() - start) / 1e6:.0f} million turns of an empty loop per CPU-second"
    )


def measure(name: str, heartbeat_s: float | None, sizes: tuple[int, ...], seed: int, loops_most_s: float) -> None:
    """One profile at all sizes."""
    before: tuple[int, float] | None = None
    for size in sizes:
        if heartbeat_s and size > MOST_WITH_HEARTBEATS:
            continue
        workload = table2.Table2().draw(size, size, np.random.default_rng(seed))
        found = simulation.simulate(workload, name, heartbeat_s=heartbeat_s)
        rate, growth, loops, ratio = found.tasks / found.cpu_s, "", "", ""
        if before is not None:
            growth = f"{math.log(found.cpu_s / before[1]) / math.log(found.tasks / before[0]):.2f}"
        before = (found.tasks, found.cpu_s)
        if name in ("fifo", "fair"):
            plain = loops_rate(workload, name, found, loops_most_s)
            loops, ratio = f"{plain:,.0f}", f"{rate / plain:.2f}x"
        beat = f"{heartbeat_s:g} s" if heartbeat_s else "-"
        print(
            line(name, beat, size, found.tasks, f"{found.cpu_s:.2f}", f"{rate:,.0f}", loops, ratio, growth), flush=True
        )


def line(*cells: object) -> str:
    """Columns."""
    return " ".join(f"{cell!s:>11}" for cell in cells)


if __name__ == "__main__":
    main()
