"""Run child processes in their own process groups, with pipes and a reliable end."""

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

READ_BYTES = 256 * 1024
_KIB = 1024
"""Unit of `ru_maxrss`."""
_PIPE_BYTES = 256 * 1024
"""Size of a pipe. All pipes of a user on a node share 64 MiB (fs.pipe-user-pages-soft), and task pods share a user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources that a command and the processes that it waited for have used.

    Attributes:
        peak_memory_bytes: the largest resident size of a process.
    """

    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


class Processes:
    """Running children, so that a stop reaches all of them and their descendants."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: int | IO[bytes],
        stderr: int | IO[bytes],
        stdout: int | IO[bytes] = subprocess.PIPE,
        env: Mapping[str, str],
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a command as the leader of its own process group.

        Raises:
            OSError: the command could not be started.
        """
        with self._lock:
            if self._stopped:
                raise InterruptedError("the task is being stopped")
            process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, pass_fds=pass_fds,
                process_group=0, bufsize=0,
            )  # fmt: skip
            self._running.add(process)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                widen(stream)
        return process

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit status (negative: the signal) of a command that has closed its output or been stopped."""
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        if process.stdout is not None:
            process.stdout.close()  # writers and readers close standard input and error
        return status

    def wait_usage(self, process: subprocess.Popen[bytes]) -> tuple[int, Usage]:
        """Return the exit status of a command that has closed its output, and its usage if no other thread reaped it.

        `Popen.returncode` may be wrong if another thread waits for the command at the same time.
        """
        try:
            _, status, used = os.wait4(process.pid, 0)
        except ChildProcessError:
            return process.wait(), Usage()
        process.returncode = os.waitstatus_to_exitcode(status)
        usage = Usage(cpu_s=used.ru_utime + used.ru_stime, peak_memory_bytes=used.ru_maxrss * _KIB)
        return process.returncode, usage

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a command and its group, if it runs."""
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self.wait(process)

    def stop_all(self, grace_s: float) -> None:
        """Send SIGTERM to every group, then SIGKILL to the remaining ones; no command can start afterwards."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            _signal(process, signal.SIGTERM)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)
            _signal(process, signal.SIGKILL)


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process so far, without that of the program it was before."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    return 0


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def widen(stream: IO[bytes]) -> None:
    """Enlarge a pipe if the kernel permits it, which saves context switches between its ends."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def chunks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of the stream as it arrives."""
    descriptor = stream.fileno()
    while chunk := os.read(descriptor, READ_BYTES):
        yield chunk


def write_all(stream: IO[bytes], data: bytes, moved: Callable[[int], object] | None = None) -> None:
    """Write all bytes to a pipe; call `moved` after each partial write."""
    view = memoryview(data)
    descriptor = stream.fileno()
    while view:
        step = os.write(descriptor, view)
        view = view[step:]
        if moved is not None:
            moved(step)


class Feeder:
    """Writes chunks to a command's input and closes it, in a thread.

    A command may stop reading early; its exit status shows whether this is an error. An error of the chunks is stored
    in `error`.
    """

    def __init__(
        self, stream: IO[bytes], chunks: Iterable[bytes], moved: Callable[[int], object] | None = None
    ) -> None:
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._moved = moved
        self._stream = stream
        self._chunks = chunks
        self.error: Exception | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait until everything is written, or the command stops reading."""
        self._thread.join()

    def _run(self) -> None:
        try:
            for chunk in self._chunks:
                write_all(self._stream, chunk, self._moved)
        except BrokenPipeError:
            pass
        except Exception as error:  # noqa: BLE001 - handed to the thread that waits for the command
            self.error = error
        finally:
            with contextlib.suppress(OSError):
                self._stream.close()
            if isinstance(self._chunks, Generator):
                self._chunks.close()  # frees its resources now, not at garbage collection
