"""Placements per CPU-second of the scheduling cycle, against a plain nested-loop scheduler in the same run.

    python -m benchmarks.cycle [--quick] [--namespaces N]
    python -m benchmarks.cycle boathouse yarn-me [--quick] [--namespaces N]

Both are given the same jobs (fair order, least-loaded placement) on the same empty nodes. The reference is what one
would write first: for each task the job with the least dominant share, then every node in a loop; it is stopped early
where it is slow. The last column is a full cluster in which tasks end one by one, each end followed by a cycle. Figures
are of this process' CPU time; the ratio is what a busy machine changes least.

With names of profiles, each is compared with `fair` instead: 3,000 nodes, and 10,000 tasks that wait when they are
full. `fill` is the first cycle, which finds all nodes empty; `ends` are cycles after each 1 % of the nodes lost a task,
those of the two profiles in turn. What a profile learns from (its observers) is part of its cost.

With `--namespaces` the jobs are of so many namespaces, which share the queue; the reference knows nothing of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.core import QUEUE, Core
from boathouse_policies import model, profiles
from boathouse_policies.yarn_me import penalty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from boathouse_policies.framework import Profile

GIB = 1 << 30
NODE = model.Resources(cpu_milli=16_000, memory_bytes=64 * GIB)
SMALL = model.Resources(cpu_milli=4000, memory_bytes=8 * GIB)
LARGE_TASKS = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A cluster and its load: `jobs` jobs of `tasks` tasks each, of `shapes` sizes, in `namespaces` namespaces."""

    nodes: int
    jobs: int
    tasks: int
    node: model.Resources = NODE
    namespaces: int = 1
    shapes: int = 208

    def namespace(self, job: int) -> model.NamespaceName:
        """Return the namespace of a job."""
        return model.NamespaceName(f"team-{job % self.namespaces:03}")

    def sizes(self) -> list[model.Resources]:
        """Return a size for each job, between 0.5 and 2 CPUs and 1 and 4 GiB."""
        return [
            model.Resources(cpu_milli=500 + 100 * (7 * i % 16), memory_bytes=GIB + GIB // 4 * (5 * i % 13))
            for i in (job % self.shapes for job in range(self.jobs))
        ]

    def make_nodes(self) -> Iterable[model.Node]:
        """Return the nodes, all equal."""
        return (model.Node(name=node_name(i), allocatable=self.node) for i in range(self.nodes))


def node_name(i: int) -> model.NodeName:
    """Return the name of a node."""
    return model.NodeName(f"node-{i:05}")


def core_of(case: Case, profile: Profile) -> Core:
    """Return the case, for the cycle."""
    core = Core(case.make_nodes(), profile)
    for i, size in enumerate(case.sizes()):
        job = model.Job(id=model.JobId(f"job-{i:04}"), queue=QUEUE, submitted_s=float(i), namespace=case.namespace(i))
        task_class = model.TaskClass(id=model.ClassId(f"{job.id}/map"), job=job.id, resources=size)
        tasks = [
            model.Task(id=model.TaskId(f"{job.id}-{t}"), task_class=task_class.id, index=t) for t in range(case.tasks)
        ]
        core.submit(job, [task_class], tasks)
    return core


def one_cycle(case: Case, profile: Profile) -> tuple[int, float]:
    """Place everything in one cycle: (placements, CPU seconds)."""
    core = core_of(case, profile)
    start = time.process_time()
    plan = core.plan(0.0)
    return len(plan.decisions), time.process_time() - start


def steady(case: Case, profile: Profile, rounds: int = 500) -> tuple[int, float]:
    """Return a full cluster in which one task ends at a time: ledger, waking, cycle and settling, for each end."""
    core = core_of(case, profile)
    running = [one.task.id for one in core.cycle(0.0)]
    start = time.process_time()
    for i in range(rounds):
        core.end(running[i])
        if core.tick(i * 0.01):
            running += [one.task.id for one in core.cycle(i * 0.01)]
    return rounds, time.process_time() - start


class Turning:
    """A cluster in which tasks end and others take their places, with all that a profile is told.

    Every other job's tasks can run with less memory, and the others' have input on nodes.
    """

    def __init__(self, case: Case, name: str) -> None:
        self.case, self.now_s = case, 0.0
        self.core = Core(case.make_nodes(), profiles.build(name))
        self.running: list[model.Placement] = []
        self._places = tuple(map(node_name, range(case.nodes)))
        for i, size in enumerate(case.sizes()):
            self.submit(i, size)

    def submit(self, i: int, size: model.Resources) -> None:
        """One job comes."""
        job = model.Job(
            id=model.JobId(f"job-{i:04}"),
            queue=QUEUE,
            submitted_s=0.0,
            kind=f"k{i}",
            namespace=self.case.namespace(i),
        )
        run_time = penalty.Reducer(
            ideal_s=100.0, input_bytes=size.memory_bytes * penalty.BUFFER_SHARE, disk_bytes_per_s=4 * GIB
        )
        one = model.TaskClass(
            id=model.ClassId(f"{job.id}/tasks"),
            job=job.id,
            resources=size,
            stage=model.Stage.REDUCE if i % 2 else model.Stage.MAP,
            estimates=penalty.Elastic(run_time, ideal_bytes=size.memory_bytes) if i % 2 else model.Fixed(seconds=60.0),
        )
        places = () if i % 2 else self._places
        tasks = [
            model.Task(
                id=model.TaskId(f"{job.id}-{t}"),
                task_class=one.id,
                index=t,
                locations=places[(7 * t) % len(places) :][:3] if places else (),
            )
            for t in range(self.case.tasks)
        ]
        self.core.submit(job, [one], tasks)

    def cycle(self) -> tuple[int, float]:
        """Return one cycle with what follows from it: (placements, CPU seconds)."""
        start = time.process_time()
        placements = self.core.cycle(self.now_s)
        seconds = time.process_time() - start
        self.running += placements
        return len(placements), seconds

    def end(self, count: int, step_s: float = 1.0) -> tuple[bool, float]:
        """Time goes by, and the tasks that were placed first end: (whether a cycle could place any, CPU seconds)."""
        start = time.process_time()
        self.now_s += step_s
        over, self.running = self.running[:count], self.running[count:]
        for one in over:
            self.core.end(one.task.id)
            self.core.tell(
                model.Finished(
                    now_s=self.now_s,
                    task=one.task.id,
                    task_class=one.task_class.id,
                    job=one.job.id,
                    node=one.node,
                    duration_s=60.0,
                    counters={},
                )
            )
        return self.core.tick(self.now_s), time.process_time() - start


def compare(names: Sequence[str], rounds: int, namespaces: int) -> None:
    """Each profile against fair, cycle by cycle in turn."""
    case = Case(nodes=3000, jobs=100, tasks=LARGE_TASKS, node=SMALL, namespaces=namespaces)
    print(_line("profile", "waiting", "fill s", "fill µs each", "ends ms", "ends µs each", "fill ratio", "ends ratio"))
    for name in names:
        pair = Turning(case, "fair"), Turning(case, name)
        filled = [one.cycle() for one in pair]
        waiting = [len(one.core) for one in pair]
        ends: list[list[tuple[int, float]]] = [[], []]
        for _ in range(rounds):
            for one, found in zip(pair, ends, strict=True):
                looks, _ = one.end(case.nodes // 100)
                if looks:
                    found.append(one.cycle())
        fill_us = [1e6 * seconds / placed for placed, seconds in filled]
        ends_us = [1e6 * sum(s for _, s in found) / max(1, sum(n for n, _ in found)) for found in ends]
        for i, profile in enumerate(("fair", name)):
            ends_ms = 1e3 * statistics.median(seconds for _, seconds in ends[i])
            ratios = (f"{fill_us[i] / fill_us[0]:.2f}x", f"{ends_us[i] / ends_us[0]:.2f}x")
            figures = (f"{filled[i][1]:.2f}", f"{fill_us[i]:.0f}", f"{ends_ms:.1f}", f"{ends_us[i]:.0f}")
            print(_line(profile, waiting[i], *figures, *ratios), flush=True)


def nested_loops(case: Case, most: int) -> tuple[int, float]:
    """Return the reference: plain objects and loops; stops after `most` placements, for it is slow."""
    free = [[NODE.cpu_milli, NODE.memory_bytes, 110] for _ in range(case.nodes)]
    total = [NODE.cpu_milli * case.nodes, NODE.memory_bytes * case.nodes]
    jobs = [[size.cpu_milli, size.memory_bytes, case.tasks, 0] for size in case.sizes()]
    placed, start = 0, time.process_time()
    while placed < most:
        waiting = [job for job in jobs if job[2]]
        if not waiting:
            break
        job = min(waiting, key=lambda job: max(job[0] * job[3] / total[0], job[1] * job[3] / total[1]))
        best, best_score = None, -1.0
        for node in free:
            if node[0] >= job[0] and node[1] >= job[1] and node[2] >= 1:
                score = (node[0] - job[0]) / NODE.cpu_milli + (node[1] - job[1]) / NODE.memory_bytes
                if score > best_score:
                    best, best_score = node, score
        if best is None:
            job[2] = 0
            continue
        best[0], best[1], best[2] = best[0] - job[0], best[1] - job[1], best[2] - 1
        job[2], job[3] = job[2] - 1, job[3] + 1
        placed += 1
    return placed, time.process_time() - start


def rate(run: Callable[[], tuple[int, float]], repeats: int) -> float:
    """Median placements per CPU-second."""
    return statistics.median(placed / seconds for placed, seconds in (run() for _ in range(repeats)))


def main() -> None:
    """Print one line for each case, or for each profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("profile", nargs="*", metavar="PROFILE", help="profile to compare with fair")
    parser.add_argument("--quick", action="store_true", help="one run of each instead of three; 5 rounds instead of 40")
    parser.add_argument(
        "--namespaces", type=int, default=1, metavar="N", help="namespaces that share the queue (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.profile) - set(profiles.names()):
        parser.error(f"no such profile: {', '.join(sorted(unknown))}; choose from: {', '.join(profiles.names())}")
    if arguments.profile:
        compare(arguments.profile, 5 if arguments.quick else 40, arguments.namespaces)
        return
    repeats = 1 if arguments.quick else 3
    cases = [
        Case(nodes=100, jobs=100, tasks=40, namespaces=arguments.namespaces),
        Case(nodes=200, jobs=20, tasks=400, namespaces=arguments.namespaces),
        Case(nodes=3000, jobs=100, tasks=500, namespaces=arguments.namespaces),
    ]
    print(_line("nodes", "jobs", "profile", "per CPU-s", "µs each", "loops/CPU-s", "ratio", "ends/CPU-s"))
    for case in cases:
        loops = rate(functools.partial(nested_loops, case, 400_000 // case.nodes), repeats)
        for name in ("fifo", "fair"):
            profile = profiles.build(name)
            ours = rate(functools.partial(one_cycle, case, profile), repeats)
            calm = rate(functools.partial(steady, case, profile), repeats)
            figures = (f"{ours:,.0f}", f"{1e6 / ours:.1f}", f"{loops:,.0f}", f"{ours / loops:.1f}x", f"{calm:,.0f}")
            print(_line(case.nodes, case.jobs, name, *figures))


def _line(*cells: object) -> str:
    return " ".join(f"{cell!s:>12}" for cell in cells)


if __name__ == "__main__":
    main()
