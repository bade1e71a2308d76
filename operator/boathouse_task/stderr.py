"""The standard error of the user's commands: Hadoop Streaming's reporter lines, everything else passed on.

`reporter:counter:GROUP,COUNTER,AMOUNT` adds to a counter, `reporter:status:MESSAGE` sets the status. Other bytes go to
this process's standard error in whole chunks, so that a flood costs little; a bounded tail is kept for the failure's
message.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from typing import IO

from boathouse_task.processes import chunks_of

PREFIX = b"reporter:"
TAIL_BYTES = 4096
_LONGEST_REPORT_BYTES = 16 * 1024
"""A line that grows beyond this without its newline is no report."""


class StderrPump:
    """Reads a command's standard error until it ends, in a thread.

    Args:
        stream: the pipe.
        count: called with group, counter and amount.
        status: called with the message.
        passed_on: the descriptor that gets all other bytes.
    """

    def __init__(
        self,
        stream: IO[bytes],
        *,
        count: Callable[[str, str, int], None],
        status: Callable[[str], None],
        passed_on: int = 2,
    ) -> None:
        self._thread = threading.Thread(target=self._run, name="stderr", daemon=True)
        self._stream = stream
        self._count = count
        self._status = status
        self._passed_on = passed_on
        self._tail = b""

    @property
    def tail(self) -> str:
        """The last bytes that were no reports, as text."""
        return self._tail.decode("utf-8", "replace").strip()

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the end of what the command, and all that it started, have to say."""
        self._thread.join()

    def _run(self) -> None:
        rest = b""
        with contextlib.suppress(OSError, ValueError):
            for chunk in chunks_of(self._stream):
                rest = self._take(rest + chunk)
        self._take(rest + b"\n" if rest else b"")
        self._stream.close()

    def _take(self, data: bytes) -> bytes:
        """Handles whole lines; returns the last, unfinished one."""
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > _LONGEST_REPORT_BYTES:
            cut = len(data)
        whole, rest = data[:cut], data[cut:]
        if PREFIX in whole:
            lines = whole.splitlines(keepends=True)
            whole = b"".join(line for line in lines if not self._report(line))
        self._pass_on(whole)
        return rest

    def _report(self, line: bytes) -> bool:
        """Whether the line was a report; it has been handled then."""
        if not line.startswith(PREFIX):
            return False
        kind, _, rest = line[len(PREFIX) :].decode("utf-8", "replace").strip().partition(":")
        if kind == "status":
            self._status(rest)
            return True
        group, _, name_and_amount = rest.partition(",")
        name, _, amount = name_and_amount.rpartition(",")
        if kind != "counter" or not name or not amount.strip().lstrip("-").isdecimal():
            return False
        self._count(group, name, int(amount))
        return True

    def _pass_on(self, data: bytes) -> None:
        if not data:
            return
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        view = memoryview(data)
        with contextlib.suppress(OSError):
            while view:
                view = view[os.write(self._passed_on, view) :]
