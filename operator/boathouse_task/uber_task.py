"""Uber task: run a small step's maps and reduces one after another in one pod, and the commit after the last step.

Each is an ordinary task with its commit, so another attempt continues after the finished ones.
"""

import dataclasses
import shutil
from collections.abc import Iterator

import msgspec

from boathouse_task import commit_task, commits, contract, counters, map_task, reduce_task
from boathouse_task.contract import TaskResult, TaskSpec, TaskType, task_name
from boathouse_task.errors import TaskError
from boathouse_task.task import Task


def run(task: Task) -> TaskResult:
    """Run the attempt.

    Raises:
        TaskError: of the task that failed, which the message names.
    """
    todo = list(_orders(task.spec))
    with task.phase("tasks"):
        for number, order in enumerate(todo, 1):
            if task.storage.size(task.layout.commit(order.task_type, order.index)) is None:
                run_inner(task, order)
            task.fraction = number / (len(todo) + 1)
    done = commits.every(task.storage, task.layout.step).values()
    sums = counters.total([record.counters for record in done])
    size = sum(record.size_bytes for record in done)
    digest = ""
    if task.spec.is_last:
        with task.phase("commit"):
            result = run_inner(task, _order(task.spec, TaskType.COMMIT, 0))
        size, digest = result.bytes_total, result.digest
    return TaskResult(
        outcome=contract.SUCCEEDED,
        winner_attempt=task.spec.attempt,
        digest=digest,
        bytes_total=size,
        counters=sums,
    )


def _orders(spec: TaskSpec) -> Iterator[TaskSpec]:
    for index, split in enumerate(spec.splits):
        yield msgspec.structs.replace(_order(spec, TaskType.MAP, index), split=split)
    for index in range(spec.reduces):
        yield _order(spec, TaskType.REDUCE, index)


def _order(spec: TaskSpec, task_type: TaskType, index: int) -> TaskSpec:
    """Return a task's parameters without the progress endpoint: a reduce reads the maps' commits from the storage."""
    return msgspec.structs.replace(spec, task_type=task_type, index=index, splits=[], progress_url=None)


def run_inner(outer: Task, order: TaskSpec) -> TaskResult:
    """Run a task in the pod of another, with its own folder, and return its result.

    Raises:
        TaskError: of the task, with its name in the message.
    """
    name = task_name(order.task_type, order.index)
    work = outer.environment.work_path / "uber" / name
    work.mkdir(parents=True, exist_ok=True)
    inner = Task(order, dataclasses.replace(outer.environment, work_path=work), outer.processes)
    before = outer.commands, outer.counters
    outer.commands, outer.counters = inner.commands, inner.counters  # the task whose progress is watched and reported
    outer.phase_name = name
    try:
        match order.task_type:
            case TaskType.MAP:
                return map_task.run(inner)
            case TaskType.REDUCE:
                return reduce_task.run(inner)
            case _:
                return commit_task.run(inner)
    except TaskError as error:
        error.message = f"{name}: {error.message}"
        raise
    finally:
        outer.commands, outer.counters = before
        inner.sort.close()
        shutil.rmtree(work, ignore_errors=True)
