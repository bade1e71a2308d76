"""Run one task and return its result."""

import shutil
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from boathouse_task import (
    cleanup_task,
    commit_task,
    contract,
    counters,
    map_task,
    masking,
    probe_task,
    reduce_task,
    setup_task,
    uber_task,
)
from boathouse_task.contract import Reason, TaskResult, TaskSpec, TaskType
from boathouse_task.environment import TEMPORARY_FOLDER, Environment
from boathouse_task.errors import TaskError
from boathouse_task.processes import Processes
from boathouse_task.task import Reporter, Task
from boathouse_task.watch import Watch

_MESSAGE_CHARS = 800
_TAIL_CHARS = 1500
_STOP_GRACE_S = 2.0
RUNS: Final[Mapping[TaskType, Callable[[Task], TaskResult]]] = {
    TaskType.SETUP: setup_task.run,
    TaskType.MAP: map_task.run,
    TaskType.REDUCE: reduce_task.run,
    TaskType.UBER: uber_task.run,
    TaskType.COMMIT: commit_task.run,
    TaskType.CLEANUP: cleanup_task.run,
    TaskType.PROBE: probe_task.run,
}


def run(spec: TaskSpec, environment: Environment, processes: Processes) -> TaskResult:
    """Run the task and return its result; a failure is a result too."""
    task: Task | None = None
    reporter: Reporter | None = None
    watch: Watch | None = None
    hidden = masking.secrets(environment.variables, spec.secret_variables)
    try:
        task = Task(spec, environment, processes)
        watch = Watch(task, encode=encode, hidden=hidden)
        watch.start()
        if task.client is not None:
            reporter = Reporter(task, task.client)
            reporter.start()
        result = RUNS[spec.task_type](task)
    except TaskError as error:
        result = failure(error, hidden)
    except BaseException as error:  # noqa: BLE001 - whatever happens, the operator must learn it
        traceback.print_exc(file=sys.stderr)
        message = f"{type(error).__name__}: {error}; this is a bug in Boathouse: report it"
        result = failure(TaskError(Reason.INTERNAL_ERROR, message, user_error=False), hidden)
    finally:
        if watch is not None:
            watch.stop()
        if reporter is not None:
            reporter.stop()
        if task is not None:
            task.sort.close()
        processes.stop_all(_STOP_GRACE_S)
    if task is None:
        return result
    measured = counters.total([result.counters, task.counters.values()])
    return msgspec.structs.replace(result, counters=measured, timings=list(task.timings))


def failure(error: TaskError, hidden: Sequence[str] = ()) -> TaskResult:
    """Return the result of a failed task, with secrets masked."""
    return TaskResult(
        outcome=contract.FAILED,
        reason=error.reason.value,
        message=masking.mask(error.message, hidden)[:_MESSAGE_CHARS],
        user_error=error.user_error,
        stderr_tail=masking.mask(error.stderr_tail, hidden)[-_TAIL_CHARS:],
        exit_code=error.exit_code,
    )


def exit_status(result: TaskResult) -> int:
    """Return the process's exit status for a result."""
    if result.succeeded:
        return contract.EXIT_SUCCEEDED
    if result.reason == Reason.TERMINATED:
        return contract.EXIT_TERMINATED
    return contract.EXIT_USER_ERROR if result.user_error else contract.EXIT_INFRASTRUCTURE


def encode(result: TaskResult, limit_bytes: int = contract.TERMINATION_LOG_MAX_BYTES) -> bytes:
    """Return the result as JSON within the limit: shorten the tail, then drop counters, the user's first."""
    encoded = msgspec.json.encode(result)
    while len(encoded) > limit_bytes and result.stderr_tail:
        over = len(encoded) - limit_bytes
        result = msgspec.structs.replace(result, stderr_tail=result.stderr_tail[max(1, over // 2) :])
        encoded = msgspec.json.encode(result)
    names = [(group, name) for group, values in result.counters.items() for name in values]
    names.sort(key=lambda each: each[0] in _KEPT_LONGEST)
    kept = {group: dict(values) for group, values in result.counters.items()}
    for dropped, (group, name) in enumerate(names, 1):
        if len(encoded) <= limit_bytes:
            break
        del kept[group][name]
        ours = {**kept.get(counters.BOATHOUSE, {}), counters.DROPPED: dropped}
        shown = {**{key: values for key, values in kept.items() if values}, counters.BOATHOUSE: ours}
        encoded = msgspec.json.encode(msgspec.structs.replace(result, counters=shown))
    return encoded


_KEPT_LONGEST = (counters.TASK, counters.INPUT, counters.OUTPUT, counters.BOATHOUSE)


def clean_folder(environment: Environment) -> None:
    """Empty the folders that tasks use in the work folder, for the next task of the same process."""
    for name in ("task", "spill", "uber", probe_task.FOLDER, TEMPORARY_FOLDER):
        shutil.rmtree(environment.work_path / name, ignore_errors=True)
