"""CPU time for the reason of one pending class, where ten times as many wait beside ten times as many running jobs.

    python -m benchmarks.diagnoses [PROFILE ...]

Each class is a job of its own that requests more than any of the 200 nodes has free. As pods of other controllers, the
jobs are not announced to what learns.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time

from benchmarks.core import QUEUE, Core
from boathouse_policies import model, profiles

FEW, MANY, ROUNDS, LIMIT = (100, 400), (1000, 4000), 3, 2.0
NODE = model.Resources(cpu_milli=16_000, memory_bytes=64 << 30)
SMALL = model.Resources(cpu_milli=500, memory_bytes=1 << 30)


def world(profile: str, pending: int, running: int) -> Core:
    """Return a cluster with running jobs of one task, beside which others wait."""
    nodes = [model.Node(name=model.NodeName(f"n{n}"), allocatable=NODE) for n in range(200)]
    core = Core(nodes, dataclasses.replace(profiles.build(profile), observers=()))
    for number in range(running):
        _submit(core, f"running-{number}", SMALL)
    while core.cycle(0.0):
        pass
    for number in range(pending):
        _submit(core, f"pending-{number}", model.Resources(cpu_milli=15_900 + number, memory_bytes=1 << 30))
    return core


def _submit(core: Core, name: str, size: model.Resources) -> None:
    job = model.Job(id=model.JobId(name), queue=QUEUE, submitted_s=0.0, name=name)
    task_class = model.TaskClass(id=model.ClassId(name), job=job.id, resources=size)
    core.submit(job, [task_class], [model.Task(id=model.TaskId(name), task_class=task_class.id)])


def milliseconds_each(profile: str, pending: int, running: int) -> float:
    """Return the CPU time of one diagnosis, where all are computed after one cycle."""
    plan = world(profile, pending, running).plan(1.0)
    classes = list(plan.left)
    assert len(classes) == pending
    start_s = time.process_time()
    for task_class in classes:
        plan.diagnosis(task_class)
    return 1e3 * (time.process_time() - start_s) / pending


def main() -> None:
    """Print a line for each profile."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("profiles", nargs="*", default=["boathouse", "fair"], metavar="PROFILE")
    for profile in parser.parse_args().profiles:
        rounds = [[milliseconds_each(profile, *case) for case in (FEW, MANY)] for _ in range(ROUNDS)]
        ratio = statistics.median(many / few for few, many in rounds)
        few, many = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(
            f"{profile}: {few:.2f} ms each of 100, {many:.2f} ms each of 1,000: ratio {ratio:.2f} (at most {LIMIT:g})"
        )


if __name__ == "__main__":
    main()
