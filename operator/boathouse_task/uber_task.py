"""Tasks that run others in one pod: uber and probe.

Uber task: run a small step's maps and reduces one after another in one pod, and the commit after the last step. Each is
an ordinary task with its commit, so another attempt continues after the finished ones.

Probe task: run a step's commands on a sample of its input in one pod, to predict the size of the job. A probe is an
uber run whose output and work folders are in the pod. It reads the user's storage and writes nothing to it; what its
reduce writes is dropped. Its counters are the result.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from boathouse_task import commit_task, contract, counters, environment, errors, map_task, reduce_task
from boathouse_task.task import Task


def run(task: Task) -> contract.TaskResult:
    """Run the attempt. Raises TaskError of the task that failed, which the message names."""
    *todo, commit = orders(msgspec.structs.replace(task.spec, progress_url=None), task.spec.splits)
    with task.phase("tasks"):
        for number, order in enumerate(todo, 1):
            if task.storage.size(task.layout.commit(order.task_type, order.index)) is None:
                run_inner(task, order)
            task.fraction = number / (len(todo) + 1)
    done = commit_task.committed(task.storage, task.layout.step).values()
    sums = counters.total(record.counters for record in done)
    size, digest = sum(record.size_bytes for record in done), ""
    if task.spec.is_last:
        with task.phase("commit"):
            result = run_inner(task, commit)
        size, digest = result.bytes_total, result.digest
    return contract.TaskResult(
        outcome=contract.SUCCEEDED, winner_attempt=task.spec.attempt, digest=digest, bytes_total=size, counters=sums
    )


def orders(spec: contract.TaskSpec, splits: Sequence[contract.Split]) -> Iterator[contract.TaskSpec]:
    """Yield the parameters of a planned step's maps, reduces and commit, from its setup's or its uber task's."""
    change = msgspec.structs.replace
    base = change(spec, maps=len(splits), input_urls=[], splits=[])
    for index, split in enumerate(splits):
        yield change(base, task_type=contract.TaskType.MAP, index=index, split=split)
    for index in range(spec.reduces):
        yield change(base, task_type=contract.TaskType.REDUCE, index=index)
    yield change(base, task_type=contract.TaskType.COMMIT, index=0)


_RUNS = {
    contract.TaskType.MAP: map_task.run,
    contract.TaskType.REDUCE: reduce_task.run,
    contract.TaskType.COMMIT: commit_task.run,
}


def run_inner(outer: Task, order: contract.TaskSpec) -> contract.TaskResult:
    """Run a task in the pod of another, in its own folder. Raises its TaskError, with its name in the message."""
    name = contract.task_name(order.task_type, order.index)
    work = outer.environment.work_path / "uber" / name
    work.mkdir(parents=True, exist_ok=True)
    inner = Task(order, dataclasses.replace(outer.environment, work_path=work), outer.processes)
    before = outer.commands, outer.counters
    outer.commands, outer.counters = inner.commands, inner.counters  # the task whose progress is watched and reported
    outer.phase_name = name
    try:
        return _RUNS[order.task_type](inner)
    except errors.TaskError as error:
        error.message = f"{name}: {error.message}"
        raise
    finally:
        outer.commands, outer.counters = before
        inner.sort.close()
        shutil.rmtree(work, ignore_errors=True)


FOLDER = "probe"  # folder in the task's work folder for the probe's output


def probe(task: Task, monotonic: Callable[[], float] = time.monotonic) -> contract.TaskResult:
    """Run the attempt. Raises TaskError of the map or reduce that failed, which the message names."""
    folder = task.environment.work_path / FOLDER
    spec = msgspec.structs.replace(
        task.spec,
        work_url=f"file://{folder}/work",
        output_url=f"file://{folder}/output",
        reduces=min(1, task.spec.reduces),
        steps=task.spec.step + 2,  # the output is not the job's, and not compressed
        splits=[],
        sample_bytes=[],
        progress_url=None,
    )
    try:
        with task.phase("tasks"):
            maps, sampled_bytes = _run_maps(task, spec, monotonic)
            if spec.reduces:
                run_inner(task, msgspec.structs.replace(spec, task_type=contract.TaskType.REDUCE, maps=maps))
            task.fraction = 1.0
        done = commit_task.committed(task.storage, environment.Layout(spec).step).values()
        sums = counters.total(record.counters for record in done)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    task.counters.add(counters.SAMPLED_BYTES, sampled_bytes, counters.BOATHOUSE)
    return contract.TaskResult(outcome=contract.SUCCEEDED, winner_attempt=task.spec.attempt, counters=sums)


def _run_maps(task: Task, spec: contract.TaskSpec, monotonic: Callable[[], float]) -> tuple[int, int]:
    """Run a map for each sampled split while there is time; return the number of maps and the bytes that they read."""
    sample = list(zip(task.spec.splits, task.spec.sample_bytes, strict=True))
    give_up_s = monotonic() + task.spec.probe_s
    sampled_bytes = 0
    for index, (split, most_bytes) in enumerate(sample):
        if index and monotonic() >= give_up_s:
            return index, sampled_bytes
        change = {"task_type": contract.TaskType.MAP, "index": index, "split": split, "sample_bytes": [most_bytes]}
        run_inner(task, msgspec.structs.replace(spec, **change))
        sampled_bytes += min(most_bytes, split.length_bytes)
        task.fraction = (index + 1) / (len(sample) + 1)
    return len(sample), sampled_bytes
