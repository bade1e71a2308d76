"""Probe task: run a step's commands on a sample of its input in one pod, to predict the size of the job.

A probe is an uber run whose output and work folders are in the pod. It reads the user's storage and writes nothing to
it; what its reduce writes is dropped. Its counters are the result.
"""

import shutil
import time
from collections.abc import Callable

import msgspec

from boathouse_task import commits, contract, counters, uber_task
from boathouse_task.contract import TaskResult, TaskSpec, TaskType
from boathouse_task.layout import Layout
from boathouse_task.task import Task

FOLDER = "probe"
"""Folder in the task's work folder for the probe's output."""


def run(task: Task, monotonic: Callable[[], float] = time.monotonic) -> TaskResult:
    """Run the attempt.

    Raises:
        TaskError: of the map or reduce that failed, which the message names.
    """
    folder = task.environment.work_path / FOLDER
    spec = _inside(task.spec, f"file://{folder}")
    try:
        with task.phase("tasks"):
            maps, sampled_bytes = _run_maps(task, spec, monotonic)
            if spec.reduces:
                order = msgspec.structs.replace(spec, task_type=TaskType.REDUCE, maps=maps)
                uber_task.run_inner(task, order)
            task.fraction = 1.0
        sums = counters.total([record.counters for record in commits.every(task.storage, Layout(spec).step).values()])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    task.counters.add(counters.SAMPLED_BYTES, sampled_bytes, counters.BOATHOUSE)
    return TaskResult(outcome=contract.SUCCEEDED, winner_attempt=task.spec.attempt, counters=sums)


def _inside(spec: TaskSpec, url: str) -> TaskSpec:
    """Return the parameters of the probe's tasks: one reduce at most, all output below `url`, no progress endpoint."""
    return msgspec.structs.replace(
        spec,
        work_url=f"{url}/work",
        output_url=f"{url}/output",
        reduces=min(1, spec.reduces),
        steps=spec.step + 2,  # the output is not the job's, and not compressed
        splits=[],
        sample_bytes=[],
        progress_url=None,
    )


def _run_maps(task: Task, spec: TaskSpec, monotonic: Callable[[], float]) -> tuple[int, int]:
    """Run a map for each sampled split while there is time; return the number of maps and the bytes that they read."""
    sample = list(zip(task.spec.splits, task.spec.sample_bytes, strict=True))
    give_up_s = monotonic() + task.spec.probe_s
    sampled_bytes = 0
    for index, (split, most_bytes) in enumerate(sample):
        if index and monotonic() >= give_up_s:
            return index, sampled_bytes
        order = msgspec.structs.replace(
            spec, task_type=TaskType.MAP, index=index, split=split, sample_bytes=[most_bytes]
        )
        uber_task.run_inner(task, order)
        sampled_bytes += min(most_bytes, split.length_bytes)
        task.fraction = (index + 1) / (len(sample) + 1)
    return len(sample), sampled_bytes
