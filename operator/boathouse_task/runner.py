"""Run one task, check it every second, and return its result.

A check stops a command without progress, and writes an interim termination message, which has the outcome "unfinished".
If the container is killed, for example because it is out of memory, the pod's status shows it, and the operator has the
end of the command's standard error.
"""

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from boathouse_task import (
    commit_task,
    contract,
    counters,
    errors,
    map_task,
    progress,
    reduce_task,
    setup_task,
    uber_task,
)
from boathouse_task.environment import Environment
from boathouse_task.processes import Processes, background
from boathouse_task.task import Task

LOOK_S = 1.0
REPORT_S = 5.0  # minimum interval of reports


class Watch:
    """Checks of a task. The `hidden` values are masked."""

    def __init__(self, task: Task, hidden: Sequence[str], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._task, self._hidden, self._monotonic, self._written = task, hidden, monotonic, ""
        self._moved, self._moved_s = (-1, ""), monotonic()

    def look(self) -> None:
        """Check the task once."""
        self._write_tail()
        commands, limit_s = self._task.commands, self._task.spec.task_timeout_s
        now_s, moved = self._monotonic(), (commands.moved, self._task.counters.status)
        if moved != self._moved or not commands.running:
            self._moved, self._moved_s = moved, now_s
        elif limit_s and now_s - self._moved_s >= limit_s:
            commands.give_up(
                f"did not read, write or report for {limit_s} s: make it write reporter:status: lines to its "
                "standard error, or raise spec.taskTimeoutSeconds"
            )

    def _write_tail(self) -> None:
        tail, path = self._task.commands.tail, self._task.environment.termination_log_path
        if tail == self._written or not path.exists():
            return
        self._written = tail
        shown = errors.mask(tail, self._hidden)[-_TAIL_CHARS:]
        with contextlib.suppress(OSError):
            path.write_bytes(encode(contract.TaskResult(outcome=contract.UNFINISHED, stderr_tail=shown)))


_MESSAGE_CHARS, _TAIL_CHARS = 800, 1500
_STOP_GRACE_S = 2.0
RUNS: Mapping[contract.TaskType, Callable[[Task], contract.TaskResult]] = {
    contract.TaskType.SETUP: setup_task.run,
    contract.TaskType.MAP: map_task.run,
    contract.TaskType.REDUCE: reduce_task.run,
    contract.TaskType.UBER: uber_task.run,
    contract.TaskType.COMMIT: commit_task.run,
    contract.TaskType.CLEANUP: commit_task.clean_up,
    contract.TaskType.PROBE: uber_task.probe,
}


def run(spec: contract.TaskSpec, environment: Environment, processes: Processes) -> contract.TaskResult:
    """Run the task and return its result; a failure is a result too."""
    task: Task | None = None
    hidden = errors.secrets(environment.variables, spec.secret_variables)
    with contextlib.ExitStack() as stack:
        stack.callback(processes.stop_all, _STOP_GRACE_S)
        try:
            task = Task(spec, environment, processes)
            stack.callback(task.sort.close)
            if task.client is not None:
                stack.enter_context(_repeated(task, "reporter", partial(_report, task, task.client), REPORT_S))
            stack.enter_context(_repeated(task, "watch", Watch(task, hidden).look, LOOK_S, is_joined=True))
            result = RUNS[spec.task_type](task)
        except errors.TaskError as error:
            result = failure(error, hidden)
        except BaseException as error:  # noqa: BLE001 - whatever happens, the operator must learn it
            traceback.print_exc(file=sys.stderr)
            message = f"{type(error).__name__}: {error}; this is a bug in Boathouse: report it"
            result = failure(errors.TaskError(contract.Reason.INTERNAL_ERROR, message), hidden)
    if task is None:
        return result
    measured = counters.total([result.counters, task.counters.values()])
    return msgspec.structs.replace(result, counters=measured, timings=task.timings)


@contextlib.contextmanager
def _repeated(
    task: Task, name: str, act: Callable[[], float | None], wait_s: float, *, is_joined: bool = False
) -> Iterator[None]:
    """Act in a thread every `wait_s`, or at the interval that the last act returned, but not while the task pauses."""
    stopped = threading.Event()

    def run() -> None:
        next_s = wait_s
        while not stopped.wait(next_s):
            with task.pause.working():
                next_s = act() or next_s

    thread = background(name, run)
    try:
        yield
    finally:
        stopped.set()
        if is_joined:
            thread.join()


def _report(task: Task, client: progress.Client) -> float | None:
    """Send the task's report; return the interval that the endpoint requests."""
    with contextlib.suppress(progress.Unavailable):
        return max(REPORT_S, client.report(task.report()))
    return None


def failure(error: errors.TaskError, hidden: Sequence[str] = ()) -> contract.TaskResult:
    """Return the result of a failed task, with secrets masked."""
    return contract.TaskResult(
        outcome=contract.FAILED,
        reason=error.reason.value,
        message=errors.mask(error.message, hidden)[:_MESSAGE_CHARS],
        user_error=error.user_error,
        stderr_tail=errors.mask(error.stderr_tail, hidden)[-_TAIL_CHARS:],
        exit_code=error.exit_code,
    )


def exit_status(result: contract.TaskResult) -> int:
    """Return the process's exit status for a result."""
    if result.succeeded or result.reason == contract.Reason.TERMINATED:
        return contract.EXIT_SUCCEEDED if result.succeeded else contract.EXIT_TERMINATED
    return contract.EXIT_USER_ERROR if result.user_error else contract.EXIT_INFRASTRUCTURE


def encode(result: contract.TaskResult) -> bytes:
    """Return the result as JSON within the limit: shorten the tail, then drop counters, the user's first."""
    limit_bytes = contract.TERMINATION_LOG_MAX_BYTES
    encoded = msgspec.json.encode(result)
    while (over := len(encoded) - limit_bytes) > 0 and result.stderr_tail:
        result = msgspec.structs.replace(result, stderr_tail=result.stderr_tail[max(1, over // 2) :])
        encoded = msgspec.json.encode(result)
    names = ((group, name) for group, values in result.counters.items() for name in values)
    kept = {group: dict(values) for group, values in result.counters.items()}
    for dropped, (group, name) in enumerate(sorted(names, key=lambda counter: counter[0] in _KEPT_LONGEST), 1):
        if len(encoded) <= limit_bytes:
            break
        del kept[group][name]
        ours = {**kept.get(counters.BOATHOUSE, {}), counters.DROPPED: dropped}
        shown = {**{key: values for key, values in kept.items() if values}, counters.BOATHOUSE: ours}
        encoded = msgspec.json.encode(msgspec.structs.replace(result, counters=shown))
    return encoded


_KEPT_LONGEST = (counters.TASK, counters.INPUT, counters.OUTPUT, counters.BOATHOUSE)
