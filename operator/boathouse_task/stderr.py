"""Handle the standard error of the user's commands: count Hadoop Streaming's reporter lines, forward the rest.

`reporter:counter:GROUP,COUNTER,AMOUNT` adds to a counter, `reporter:status:MESSAGE` sets the status. Other bytes are
written to this process's standard error in large chunks, which is cheap; a tail of limited size is kept for the
failure's message. An invalid counter line is forwarded after a warning.
"""

import contextlib
import os
import threading
from collections.abc import Callable
from typing import IO, Final, NamedTuple

from boathouse_task import java
from boathouse_task.processes import chunks_of

PREFIX = b"reporter:"
_COUNTER: Final = "reporter:counter:"
_STATUS: Final = "reporter:status:"
_WORDS: Final = 3
TAIL_BYTES = 4096
_LONGEST_REPORT_BYTES = 16 * 1024
"""Maximum length of a reporter line."""
MAX_WARNINGS: Final = 20
"""Maximum warnings about invalid counter lines; further ones are forwarded without a warning."""


class Count(NamedTuple):
    """A counter and the amount to add to it."""

    group: str
    name: str
    amount: int


def parse_counter(text: str) -> Count | str:
    """Parse `GROUP,COUNTER,AMOUNT` as Hadoop Streaming does; return the count, or why it is invalid."""
    words = java.split(java.trimmed(text), ",")
    if len(words) != _WORDS:
        return "write reporter:counter:GROUP,COUNTER,AMOUNT, with no other comma"
    amount = java.parsed_long(words[2])
    return "its amount is not a 64-bit integer" if amount is None else Count(words[0], words[1], amount)


class StderrPump:
    """Reads a command's standard error until it ends, in a thread.

    Args:
        stream: the pipe.
        count: called with group, counter and amount.
        status: called with the message.
        passed_on: descriptor for all other bytes.
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
        self._inside_a_line = False
        self._warnings = 0

    @property
    def tail(self) -> str:
        """Last bytes other than reporter lines, as text."""
        return self._tail.decode("utf-8", "replace").strip()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the command and its descendants have closed their standard error."""
        self._thread.join()

    def _run(self) -> None:
        rest = b""
        with contextlib.suppress(OSError, ValueError):
            for chunk in chunks_of(self._stream):
                rest = self._take(rest + chunk)
        self._take(rest + b"\n" if rest else b"")
        self._stream.close()

    def _take(self, data: bytes) -> bytes:
        """Handle whole lines; return the last, incomplete one."""
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > _LONGEST_REPORT_BYTES:
            cut = len(data)
        whole, rest = data[:cut], data[cut:]
        if PREFIX in whole:
            whole = b"".join(map(self._line, whole.splitlines(keepends=True)))
        elif whole:
            self._inside_a_line = not whole.endswith(b"\n")
        self._pass_on(whole)
        return rest

    def _line(self, line: bytes) -> bytes:
        """Handle a line; return the bytes to forward: none of a reporter line, all of any other."""
        continued, self._inside_a_line = self._inside_a_line, not line.endswith((b"\n", b"\r"))
        if continued or not line.startswith(PREFIX):
            return line
        text = java.decoded(line.rstrip(b"\r\n"))
        if text.startswith(_STATUS):
            self._status(java.trimmed(text.removeprefix(_STATUS)))
            return b""
        if not text.startswith(_COUNTER):
            return line
        count = parse_counter(text.removeprefix(_COUNTER))
        if isinstance(count, str):
            return self._warning(count) + line
        self._count(*count)
        return b""

    def _warning(self, why: str) -> bytes:
        self._warnings += 1
        if self._warnings > MAX_WARNINGS:
            return b""
        last = " (further warnings of this kind are omitted)" if self._warnings == MAX_WARNINGS else ""
        return f"boathouse-task: the next line is not counted: {why}{last}\n".encode()

    def _pass_on(self, data: bytes) -> None:
        if not data:
            return
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        view = memoryview(data)
        with contextlib.suppress(OSError):
            while view:
                view = view[os.write(self._passed_on, view) :]
