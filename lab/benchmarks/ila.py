"""Placements per second of scheduling CPU time with ILA at the paper's scale (section 5.6), and as a ratio to `fair`.

2,400 virtual machines on 400 hosts, 100 jobs, 15,000 maps and 5,000 reducers of 10 s each where nothing is in their
way. The paper's simulator scheduled 720 tasks a second on a 3 GHz Xeon. Counted is all CPU time of scheduling: the
ledger, the scheduling queue, the cycles, and what the policy observes and learns (placements, ends, and instruments of
all nodes every 5 s). Not counted is the world that tells what happens, here a plain heap of ends.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import cProfile
import dataclasses
import heapq
import itertools
import pstats
import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.core import QUEUE, Core
from boathouse_policies import model, profiles
from boathouse_sim import conditions, topology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_policies.framework import Profile

MIB = 1 << 20
MAP = model.Resources(cpu_milli=1000, memory_bytes=512 * MIB)
REDUCE = model.Resources(memory_bytes=3000 * MIB)
INSTRUMENTS_S = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The load: jobs alternate between I/O- and CPU-bound."""

    hosts: int
    jobs: int
    maps: int
    reduces: int
    every_s: float
    seed: int = 1


class World:
    """A shell around a profile, with a stopwatch for what schedules."""

    def __init__(self, load: Load, profile: Profile) -> None:
        machines, hosts = topology.virtual(
            load.hosts, machines_per_host=6, cores=2, mem_mb=4096, host_cores=10.0, racks=2
        )
        self.cpu_s, self.placements, self.cycles, self.now_s = 0.0, 0, 0, 0.0
        self.core = Core(
            (
                model.Node(
                    name=model.NodeName(one.name),
                    allocatable=model.Resources(cpu_milli=round(one.cores * 1000), memory_bytes=one.mem_mb * MIB),
                    server=one.server,
                    rack=one.rack,
                )
                for one in machines
            ),
            profile,
        )
        self.names = [model.NodeName(one.name) for one in machines]
        self.server = {model.NodeName(one.name): one.server for one in machines}
        self._capacity = np.array([[hosts[0].cores, hosts[0].disk_mb_per_s, hosts[0].network_mb_per_s, 1.0]])
        self._load: dict[str, list[float]] = collections.defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
        self._ends: list[tuple[float, int, model.Placement, float]] = []
        self._sequence = itertools.count()
        self._random = np.random.default_rng(load.seed)
        self._waves = [self._job(load, i) for i in range(load.jobs)]

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count the CPU time of the block as scheduling."""
        start = time.process_time()
        yield
        self.cpu_s += time.process_time() - start

    def _job(self, load: Load, i: int) -> tuple[model.Job, list[model.TaskClass], list[model.Task]]:
        """Return the sizes of jobs differ by up to nine times."""
        share = (1 + i % 9) / 5 / load.jobs
        kind = "io" if i % 2 else "cpu"
        job = model.Job(id=model.JobId(f"job-{i:03}"), queue=QUEUE, submitted_s=float(i), kind=kind)
        estimates = model.Fixed(seconds=10.0, read_bytes=128 * MIB if i % 2 else MIB)
        stages = ((model.Stage.MAP, MAP, load.maps), (model.Stage.REDUCE, REDUCE, load.reduces))
        classes, tasks = [], []
        for stage, size, total in stages:
            name = model.ClassId(f"{job.id}/{stage}")
            one = model.TaskClass(id=name, job=job.id, resources=size, stage=stage, estimates=estimates)
            classes.append(one)
            tasks += [self._task(one, t, 3 if stage is model.Stage.MAP else 0) for t in range(round(total * share))]
        return job, classes, tasks

    def _task(self, one: model.TaskClass, index: int, replicas: int) -> model.Task:
        places = self._random.integers(len(self.names), size=replicas).tolist()
        where = tuple(self.names[place] for place in dict.fromkeys(places))
        return model.Task(id=model.TaskId(f"{one.id}-{index}"), task_class=one.id, index=index, locations=where)

    def run(self, step_s: float, every_s: float) -> None:
        """Until all is done: time goes by in steps, of which each ends with a cycle if anything waits."""
        arrivals = collections.deque(self._waves)
        instruments_s = 0.0
        while arrivals or self._ends or len(self.core):
            while arrivals and arrivals[0][0].submitted_s * every_s <= self.now_s:
                self._submit(*arrivals.popleft())
            self._end()
            if self.core.profile.observers and instruments_s <= self.now_s:
                instruments_s += INSTRUMENTS_S
                self._measure()
            self._schedule()
            self.now_s += step_s

    def _submit(self, job: model.Job, classes: list[model.TaskClass], tasks: list[model.Task]) -> None:
        with self.counted():
            self.core.submit(job, classes, tasks, self.now_s)

    def _schedule(self) -> None:
        placed = []
        with self.counted():
            while self.core.tick(self.now_s):
                placed += self.core.cycle(self.now_s)
                self.cycles += 1
        self.placements += len(placed)
        for one in placed:
            self._begin(one)

    def _begin(self, one: model.Placement) -> None:
        """Start a task, and compute its run time with those that run on the node now."""
        load = self._load[self.server[one.node]]
        cpu, disk = self._use(one)
        load[0], load[1], load[3] = load[0] + cpu, load[1] + disk, load[3] + (disk > 0)
        slow = conditions.Saturation().slowdown(np.array([[*load[:3], 0.0]]), self._capacity, np.array([load[3]]))[0]
        seconds = 10.0 * float(slow[conditions.DISK if disk else conditions.CPU]) * self._random.uniform(0.9, 1.1)
        heapq.heappush(self._ends, (self.now_s + seconds, next(self._sequence), one, seconds))

    @staticmethod
    def _use(one: model.Placement) -> tuple[float, float]:
        """CPUs and MB/s of disks."""
        if one.task_class.stage is model.Stage.REDUCE:
            return 0.0, 5.0
        return (0.1, 20.0) if one.job.kind == "io" else (1.0, 0.0)

    def _end(self) -> None:
        """End the tasks that are due, first in the world and then for the scheduler."""
        events = []
        while self._ends and self._ends[0][0] <= self.now_s:
            _, _, one, seconds = heapq.heappop(self._ends)
            events.append(self._ended(one, seconds))
        with self.counted():
            for event in events:
                self.core.tell(event)
                self.core.end(event.task)

    def _ended(self, one: model.Placement, seconds: float) -> model.Finished:
        load = self._load[self.server[one.node]]
        cpu, disk = self._use(one)
        load[0], load[1], load[3] = load[0] - cpu, load[1] - disk, load[3] - (disk > 0)
        return model.Finished(
            now_s=self.now_s,
            task=one.task.id,
            task_class=one.task_class.id,
            job=one.job.id,
            node=one.node,
            duration_s=seconds,
            counters={"cpu_s": cpu * 10.0, "read_bytes": disk * 5e6, "written_bytes": disk * 5e6},
        )

    def _measure(self) -> None:
        used: dict[model.NodeName, list[float]] = {name: [0.0, 0.0] for name in self.names}
        for _, _, one, _ in self._ends:
            cpu, disk = self._use(one)
            used[one.node][0] += cpu
            used[one.node][1] += disk
        events = [
            model.Measured(now_s=self.now_s, name=name, usage={"cpu_cores": cpu, "disk_bytes_per_s": disk * 1e6})
            for name, (cpu, disk) in used.items()
        ]
        with self.counted():
            for event in events:
                self.core.tell(event)


def main() -> None:
    """Print a line for each profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--hosts", type=int, default=400, help="hosts with six virtual machines each (default %(default)s)"
    )
    parser.add_argument("--maps", type=int, default=15_000, help="total number of maps (default %(default)s)")
    parser.add_argument("--step", type=float, default=0.25, help="seconds between cycles (default %(default)s)")
    parser.add_argument("--profiles", nargs="+", default=["fair", "lao", "iao", "ila"], choices=profiles.names())
    parser.add_argument("--profile-calls", action="store_true", help="profile the Python calls")
    options = parser.parse_args()
    load = Load(hosts=options.hosts, jobs=100, maps=options.maps, reduces=options.maps // 3, every_s=0.25)
    columns = (("profile", 10), ("placements", 10), ("per CPU-s", 10), ("µs each", 8), ("cycles", 7), ("makespan", 9))
    print(*(f"{name:>{width}}" for name, width in (*columns, ("of fair", 8))))
    rates: dict[str, float] = {}
    for name in options.profiles:
        world = World(load, profiles.build(name))
        with cProfile.Profile() if options.profile_calls else contextlib.nullcontext() as calls:
            world.run(options.step, load.every_s)
        rates[name] = world.placements / world.cpu_s
        ratio = f"{rates[name] / rates['fair']:.2f}" if "fair" in rates else "-"
        print(
            f"{name:>10} {world.placements:>10,} {rates[name]:>10,.0f} {1e6 / rates[name]:>8.1f} {world.cycles:>7}"
            f" {world.now_s:>8.1f}s {ratio:>8}",
            flush=True,
        )
        if calls is not None:
            pstats.Stats(calls).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
