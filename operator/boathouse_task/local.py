"""Run a whole job on this machine with the code of the task pods, to test streaming scripts, and for tests."""

import contextlib
import dataclasses
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from boathouse_task import runner
from boathouse_task.contract import Counters, Partitioner, Plan, TaskResult, TaskSpec, TaskType
from boathouse_task.environment import Environment
from boathouse_task.layout import Layout
from boathouse_task.processes import Processes
from boathouse_task.storage import Storage


class JobFailed(Exception):  # noqa: N818 - it is what happened
    """A task of the job failed.

    Attributes:
        task: name of the task.
        result: its result.
    """

    def __init__(self, task: str, result: TaskResult) -> None:
        super().__init__(f"{task}: {result.reason}: {result.message}")
        self.task = task
        self.result = result


def job_spec(
    *,
    inputs: Sequence[str],
    output: str,
    mapper: Sequence[str] | None,
    combiner: Sequence[str] | None = None,
    reducer: Sequence[str] | None = None,
    reduces: int = 1,
    **more: object,
) -> TaskSpec:
    """Return the parameters of a new job's setup task, from which the others follow; `more`: fields of `TaskSpec`."""
    uid = str(uuid.uuid4())
    fields: dict[str, object] = {
        "job_uid": uid,
        "job_name": "local",
        "namespace": "local",
        "task_type": TaskType.SETUP,
        "input_urls": list(inputs),
        "output_url": output.rstrip("/"),
        "work_url": f"{output.rstrip('/')}/_temporary/boathouse-{uid}",
        "mapper": list(mapper) if mapper else None,
        "combiner": list(combiner) if combiner else None,
        "reducer": list(reducer) if reducer else None,
        "reduces": reduces if reducer else 0,
        **more,
    }
    return msgspec.convert(fields, TaskSpec)


def run_job(
    spec: TaskSpec,
    environment: Environment,
    on_result: Callable[[str, TaskResult], None] = lambda _task, _result: None,
    later: Sequence[Mapping[str, object]] = (),
) -> TaskResult:
    """Run all tasks one after another and return the commit's result. A job that fails leaves no files.

    Args:
        spec: parameters of the setup task.
        environment: environment, in whose `work_path` each task gets a folder.
        on_result: called with every task's result.
        later: fields of `TaskSpec` of the steps after the first, such as mapper, reducer and reduces.

    Raises:
        JobFailed: a task failed.
    """

    def execute(order: TaskSpec) -> TaskResult:
        number = f"{order.task_type.value}-{order.index}"
        surroundings = dataclasses.replace(
            environment, work_path=environment.work_path / number, pod_uid=uuid.uuid4().hex
        )
        try:
            result = runner.run(order, surroundings, Processes())
        finally:
            runner.clean_folder(surroundings)
        on_result(number, result)
        if not result.succeeded:
            raise JobFailed(number, result)
        return result

    try:
        return _run_steps(spec, environment, execute, later)
    except (JobFailed, KeyboardInterrupt):
        with contextlib.suppress(JobFailed):
            execute(msgspec.structs.replace(spec, task_type=TaskType.CLEANUP))
        raise


def _run_steps(
    spec: TaskSpec,
    environment: Environment,
    execute: Callable[[TaskSpec], TaskResult],
    later: Sequence[Mapping[str, object]],
) -> TaskResult:
    todo = [spec]
    for number, step in enumerate([{}, *later]):
        spec = msgspec.structs.replace(spec, step=number, steps=len(later) + 1, **_step(step, spec))
        for order in [*todo[1:-1], spec]:
            execute(order)
        todo = [spec, *orders(spec, _plan(spec, environment))]
    for order in todo[1:-1]:
        execute(order)
    return execute(todo[-1])


def _step(fields: Mapping[str, object], before: TaskSpec) -> dict[str, Any]:
    """Return the parameters of a later step from those of the previous step; it keeps the number of reduces, if any."""
    if not fields:
        return {}
    cleared = {"mapper": None, "combiner": None, "reducer": None, "partitioner": Partitioner(), **fields}
    return {
        "previous_reduces": before.reduces,
        "reduces": max(1, before.reduces) if cleared["reducer"] else 0,
        **cleared,
    }


def _plan(spec: TaskSpec, environment: Environment) -> Plan:
    storage = Storage(spec.s3, environment.variables, part_bytes=environment.part_bytes, hdfs_addresses=spec.hdfs)
    return msgspec.json.decode(storage.read(Layout(spec).plan), type=Plan)


def orders(spec: TaskSpec, plan: Plan) -> Iterator[TaskSpec]:
    """Yield the parameters of a planned step's maps, reduces and commit, from its setup's."""
    change = msgspec.structs.replace
    base = change(spec, maps=len(plan.splits), input_urls=[])
    for index, split in enumerate(plan.splits):
        yield change(base, task_type=TaskType.MAP, index=index, split=split)
    for index in range(spec.reduces):
        yield change(base, task_type=TaskType.REDUCE, index=index)
    yield change(base, task_type=TaskType.COMMIT)


def local_environment(work_path: Path, variables: Mapping[str, str], memory_limit_bytes: int) -> Environment:
    """Return an environment outside of a pod."""
    return Environment(
        work_path=work_path,
        memory_limit_bytes=memory_limit_bytes,
        pod_name="local",
        pod_uid="local",
        variables=variables,
    )


def counter_lines(values: Counters) -> Iterator[str]:
    """Return the counters in the format that Hadoop prints at a job's end."""
    for group in sorted(values):
        yield f"\t{group}"
        for name, value in sorted(values[group].items()):
            yield f"\t\t{name}={value}"
