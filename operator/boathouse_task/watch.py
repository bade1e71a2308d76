"""Check a running task every second: stop a command without progress, and write an interim termination message.

The message has the outcome "unfinished". If the container is killed, for example because it is out of memory, the pod's
status shows it, and the operator has the end of the command's standard error.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from boathouse_task import contract, masking
from boathouse_task.contract import TaskResult
from boathouse_task.task import Task

_EVERY_S = 1.0
_TAIL_CHARS = 1500


class Watch:
    """Thread that checks a task.

    Args:
        task: The task.
        encode: Encodes a termination message.
        hidden: Values to mask.
        every_s: Interval of checks.
        monotonic: The clock.
    """

    def __init__(
        self,
        task: Task,
        *,
        encode: Callable[[TaskResult], bytes],
        hidden: Sequence[str],
        every_s: float = _EVERY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._encode = encode
        self._hidden = hidden
        self._every_s = every_s
        self._monotonic = monotonic
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._stopped = threading.Event()
        self._written = ""
        self._moved = (-1, "")
        self._moved_s = monotonic()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; afterwards nothing of it is written."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            with self._task.pause.working():
                self.look()

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
        tail = self._task.commands.tail
        path = self._task.environment.termination_log_path
        if tail == self._written or not path.exists():
            return
        self._written = tail
        shown = masking.mask(tail, self._hidden)[-_TAIL_CHARS:]
        with contextlib.suppress(OSError):
            path.write_bytes(self._encode(TaskResult(outcome=contract.UNFINISHED, stderr_tail=shown)))
