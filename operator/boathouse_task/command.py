"""Run the user's commands, and handle their standard error.

Hadoop Streaming's reporter lines on standard error are counted, the rest is forwarded.
`reporter:counter:GROUP,COUNTER,AMOUNT` adds to a counter, `reporter:status:MESSAGE` sets the status. Other bytes are
written to this process's standard error in large chunks, which is cheap; a tail of limited size is kept for the
failure's message. An invalid counter line is forwarded after a warning.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from boathouse_task import lines
from boathouse_task.contract import Reason
from boathouse_task.counters import CounterSet
from boathouse_task.errors import TaskError
from boathouse_task.processes import Processes, background, chunks_of, feed, peak_memory_bytes, signal_group, write_all

PREFIX = b"reporter:"
_COUNTER = "reporter:counter:"
_STATUS = "reporter:status:"
TAIL_BYTES = 4096
_LONGEST_REPORT_BYTES = 16 * 1024
"""Maximum length of a reporter line."""
MAX_WARNINGS = 20
"""Maximum warnings about invalid counter lines; further ones are forwarded without a warning."""


class Count(NamedTuple):
    """A counter and the amount to add to it."""

    group: str
    name: str
    amount: int


def parse_counter(text: str) -> Count | str:
    """Parse `GROUP,COUNTER,AMOUNT` as Hadoop Streaming does; return the count, or why it is invalid."""
    match lines.java_split(lines.java_trimmed(text), ","):
        case [group, name, number]:
            amount = lines.java_long(number)
            return "its amount is not a 64-bit integer" if amount is None else Count(group, name, amount)
        case _:
            return "write reporter:counter:GROUP,COUNTER,AMOUNT, with no other comma"


class StderrPump:
    """Reads a command's standard error until it ends; `passed_on` is a descriptor for all but reporter lines."""

    def __init__(
        self,
        stream: IO[bytes],
        *,
        count: Callable[[str, str, int], None],
        status: Callable[[str], None],
        passed_on: int = 2,
    ) -> None:
        self._stream, self._count, self._status, self._passed_on = stream, count, status, passed_on
        self._tail = b""
        self._inside_a_line = False
        self._warnings = 0

    @property
    def tail(self) -> str:
        """Last bytes other than reporter lines, as text."""
        return self._tail.decode("utf-8", "replace").strip()

    def run(self) -> None:
        """Read until the command and its descendants have closed their standard error."""
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
        if whole:
            self._tail = (self._tail + whole)[-TAIL_BYTES:]
            with contextlib.suppress(OSError):
                write_all(self._passed_on, whole)
        return rest

    def _line(self, line: bytes) -> bytes:
        """Handle a line; return the bytes to forward: none of a reporter line, all of any other."""
        continued, self._inside_a_line = self._inside_a_line, not line.endswith((b"\n", b"\r"))
        if continued or not line.startswith(PREFIX):
            return line
        text = lines.java_decoded(line.rstrip(b"\r\n"))
        if text.startswith(_STATUS):
            self._status(lines.java_trimmed(text.removeprefix(_STATUS)))
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


_COMMAND_NOT_FOUND = 127
"""Exit status of shells and env if they do not find a command."""
_COMMAND_NOT_EXECUTABLE = 126
_PEAK_ERROR_BYTES = 1024 * 1024
"""Error of the kernel's counters of memory."""


class CommandRunner:
    """Runs commands of the job in its folder, which is searched for commands before PATH, as in Hadoop.

    Unless `is_exit_checked`, an exit status other than 0, or a signal, is no failure. Lack of memory always is.

    Attributes:
        moved: progress of the running commands: bytes that they read and wrote, and reports.
        cpu_s: CPU time of the commands that have ended.
        peak_memory_bytes: the largest memory of them; 0 if none used more than this process did at its start, because
            the kernel counts that for its children.
    """

    def __init__(
        self,
        processes: Processes,
        counters: CounterSet,
        folder: Path,
        variables: Mapping[str, str],
        *,
        is_exit_checked: bool = True,
    ) -> None:
        self._processes, self._counters = processes, counters
        self._folder, self._variables, self._is_exit_checked = folder, variables, is_exit_checked
        self._fed: set[subprocess.Popen[bytes]] = set()
        self._pump: StderrPump | None = None
        self._given_up: str | None = None
        self.moved = 0
        self.cpu_s = 0.0
        self.peak_memory_bytes = 0

    @property
    def running(self) -> bool:
        """Whether a command runs."""
        return bool(self._fed)

    @property
    def tail(self) -> str:
        """End of the last command's standard error."""
        return self._pump.tail if self._pump is not None else ""

    def give_up(self, why: str) -> None:
        """Stop the running commands, which then fail with this message."""
        self._given_up = why
        for process in list(self._fed):
            signal_group(process, signal.SIGKILL)

    def _move(self, amount: int) -> None:
        self.moved += amount

    def _count(self, group: str, name: str, amount: int) -> None:
        self.moved += 1
        self._counters.add_users(group, name, amount)

    def find(self, argv: Sequence[str]) -> str:
        """Return the path of the program of `argv`. Raises TaskError: CommandNotFound."""
        if not argv or not argv[0]:
            raise TaskError(Reason.COMMAND_NOT_FOUND, "the command is empty")
        path = f"{self._folder}{os.pathsep}{self._variables.get('PATH', os.defpath)}"
        program = shutil.which(str(self._folder / argv[0]) if "/" in argv[0] else argv[0], path=path)
        if program is None:
            where = "is neither in the working folder (spec.files) nor on the image's PATH"
            raise TaskError(Reason.COMMAND_NOT_FOUND, f"{argv[0]} {where}")
        return program

    def run(self, argv: Sequence[str], source: Iterable[bytes] | int, *, is_reporting: bool = True) -> Iterator[bytes]:
        """Start the command at once and return its output in chunks; its exit status is checked at the end.

        `source` has chunks, or is a descriptor to read from. Unless `is_reporting`, reporter lines do not count. Raises
        TaskError: CommandNotFound, UserCommandFailed, OutOfMemory, TaskTimeout.
        """
        kills_before, inherited_bytes = oom_kills(), peak_memory_bytes()
        process = self._start(argv, source if isinstance(source, int) else subprocess.PIPE)
        assert process.stderr is not None
        pump = self._pump = StderrPump(
            process.stderr,
            count=self._count if is_reporting else lambda *_: None,
            status=self._counters.set_status if is_reporting else lambda _: None,
        )
        threads, errors = [background("stderr", pump.run)], list[Exception]()
        if not isinstance(source, int):
            assert process.stdin is not None
            self._fed.add(process)
            threads.append(background("feeder", partial(feed, process.stdin, source, self._move, errors)))
        return self._output(argv, process, pump, threads, errors, kills_before, inherited_bytes)

    def _start(self, argv: Sequence[str], stdin: int) -> "subprocess.Popen[bytes]":
        program = self.find(argv)
        try:
            return self._processes.start(
                [program, *argv[1:]], stdin=stdin, stderr=subprocess.PIPE, env=self._variables, cwd=self._folder
            )
        except InterruptedError:
            raise
        except OSError as error:
            raise TaskError(
                Reason.COMMAND_NOT_FOUND,
                f"{argv[0]} cannot be run: {error.strerror}; "
                "check that its first line (#!) names an interpreter of the image",
            ) from None

    def _output(
        self,
        argv: Sequence[str],
        process: "subprocess.Popen[bytes]",
        pump: StderrPump,
        threads: Sequence[threading.Thread],
        errors: Sequence[Exception],
        kills_before: int,
        inherited_bytes: int,
    ) -> Iterator[bytes]:
        assert process.stdout is not None
        try:
            for chunk in chunks_of(process.stdout):
                self.moved += len(chunk)
                yield chunk
            status, cpu_s, peak_bytes = self._processes.wait_usage(process)
            self.cpu_s += cpu_s
            if peak_bytes > inherited_bytes + _PEAK_ERROR_BYTES:
                self.peak_memory_bytes = max(self.peak_memory_bytes, peak_bytes)
            for thread in threads:
                thread.join()
            if errors:
                raise errors[0]
        finally:
            self._fed.discard(process)
            self._processes.kill(process)
        if status and self._given_up is not None:
            message = f"{' '.join(argv)[:200]!r} {self._given_up}"
            raise TaskError(Reason.TASK_TIMEOUT, message, stderr_tail=pump.tail, exit_code=status)
        if status:
            failure = _explain(argv, status, pump.tail, killed_for_memory=oom_kills() > kills_before)
            if self._is_exit_checked or failure.reason is Reason.OUT_OF_MEMORY:
                raise failure


def _explain(argv: Sequence[str], status: int, tail: str, *, killed_for_memory: bool) -> TaskError:
    """Return why a command ended with a non-zero status (negative: a signal)."""
    command = " ".join(argv)[:200]
    if status == -signal.SIGKILL and killed_for_memory:
        reason, what = Reason.OUT_OF_MEMORY, "ran out of memory and was killed: raise resources.requests.memory"
    elif status < 0:
        names = {number.value: number.name for number in signal.Signals}
        reason, what = Reason.USER_COMMAND_FAILED, f"was killed by {names.get(-status, f'signal {-status}')}"
    elif status in (_COMMAND_NOT_FOUND, _COMMAND_NOT_EXECUTABLE):
        what = f"exited with status {status}: a command in it was not found or is not executable"
        reason = Reason.COMMAND_NOT_FOUND
    else:
        reason, what = Reason.USER_COMMAND_FAILED, f"exited with status {status}"
    last = tail.rsplit("\n", 1)[-1][:300]
    return TaskError(reason, f"{command!r} {what}" + (f": {last}" if last else ""), stderr_tail=tail, exit_code=status)


_OOM_FILES = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))


def oom_kills() -> int:
    """Return the number of out-of-memory kills in this container (cgroup v2, v1); 0 if unknown."""
    for path in _OOM_FILES:
        try:
            words = path.read_text().split()
        except OSError:
            continue
        if "oom_kill" in words:
            return int(words[words.index("oom_kill") + 1])
    return 0
