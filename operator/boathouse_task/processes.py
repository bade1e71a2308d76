"""Run child processes in their own process groups, with pipes and a reliable end."""

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

READ_BYTES = 256 * 1024
_KIB = 1024
"""Unit of `ru_maxrss`."""
_PIPE_BYTES = 256 * 1024
"""Size of a pipe. All pipes of a user on a node share 64 MiB (fs.pipe-user-pages-soft), and task pods share a user."""


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
        """Start a command as the leader of its own process group. Raises OSError if it could not be started."""
        with self._lock:
            if self._stopped:
                raise InterruptedError("the task is being stopped")
            process = subprocess.Popen(
                argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, pass_fds=pass_fds,
                process_group=0, bufsize=0,
            )  # fmt: skip
            self._running.add(process)
        for stream in filter(None, (process.stdin, process.stdout)):
            with contextlib.suppress(OSError):  # a larger pipe saves context switches between its ends
                fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return process

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Return the exit status (negative: the signal) of a command that has closed its output or been stopped."""
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        if process.stdout is not None:
            process.stdout.close()  # writers and readers close standard input and error
        return status

    def wait_usage(self, process: subprocess.Popen[bytes]) -> tuple[int, float, int]:
        """Return a command's exit status, CPU seconds and peak memory in bytes, after it has closed its output.

        The peak is the largest resident size of the command or of a process that it waited for. Both are 0 if another
        thread reaped the command: `Popen.returncode` may be wrong if two threads wait for it at the same time.
        """
        try:
            _, status, used = os.wait4(process.pid, 0)
        except ChildProcessError:
            return process.wait(), 0.0, 0
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * _KIB

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a command and its group, if it runs; then `wait`."""
        if process.poll() is None:
            signal_group(process, signal.SIGKILL)
        self.wait(process)

    def stop_all(self, grace_s: float) -> None:
        """Send SIGTERM to every group, then SIGKILL to the remaining ones; no command can start afterwards."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            signal_group(process, signal.SIGTERM)
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)
            signal_group(process, signal.SIGKILL)


def peak_memory_bytes() -> int:
    """Return the largest resident size of this process so far, without that of the program it was before."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * _KIB
    return 0


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a command's group, if there is one."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def background(name: str, target: Callable[[], object]) -> threading.Thread:
    """Run a function in a thread that does not keep this process alive."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def chunks_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of the stream as it arrives."""
    descriptor = stream.fileno()
    while chunk := os.read(descriptor, READ_BYTES):
        yield chunk


def write_all(descriptor: int, data: bytes, moved: Callable[[int], object] | None = None) -> None:
    """Write all bytes to a pipe or a file; call `moved` after each partial write."""
    view = memoryview(data)
    while view:
        step = os.write(descriptor, view)
        view = view[step:]
        if moved is not None:
            moved(step)


def feed(stream: IO[bytes], chunks: Iterable[bytes], moved: Callable[[int], object], errors: list[Exception]) -> None:
    """Write chunks to a command's input and close it. An error of the chunks is added to `errors`.

    A command may stop reading early; its exit status shows whether this is an error.
    """
    try:
        for chunk in chunks:
            write_all(stream.fileno(), chunk, moved)
    except BrokenPipeError:
        pass
    except Exception as error:  # noqa: BLE001 - handed to the thread that waits for the command
        errors.append(error)
    finally:
        with contextlib.suppress(OSError):
            stream.close()
        if isinstance(chunks, Generator):
            chunks.close()  # frees its resources now, not at garbage collection
