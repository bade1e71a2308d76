"""A process with a CPU quota of its own: by a cgroup where one can be made, else by stopping and continuing it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

from boathouse_e2e.local import cgroups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PERIOD_S = 0.1


@contextlib.contextmanager
def process(command: Sequence[str], *, cores: float, name: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command with at most so many cores; it is ended with the block, if it has not ended itself.

    Args:
        command: What to run; its output is a pipe.
        cores: CPU seconds a second.
        name: Of the cgroup; no other process may use it.
    """
    with contextlib.ExitStack() as stack:
        try:
            cgroups.create(name)
        except OSError:
            running = stack.enter_context(_started(command))
            stack.enter_context(_stopped_now_and_then(running, cores))
        else:
            stack.callback(cgroups.remove, name)
            running = stack.enter_context(_started(["sh", "-c", _joining(_limited(name, cores)), *command]))
        yield running


@contextlib.contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def _limited(name: str, cores: float) -> list[Path]:
    """Return the cgroup's folders, with the quota written."""
    period_us = int(PERIOD_S * 1e6)
    folders = cgroups.find(name)
    for folder in folders:
        if (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text(f"{int(cores * period_us)} {period_us}")
        elif (folder / "cpu.cfs_quota_us").exists():
            (folder / "cpu.cfs_period_us").write_text(str(period_us))
            (folder / "cpu.cfs_quota_us").write_text(str(int(cores * period_us)))
    return folders


def _joining(folders: Sequence[Path]) -> str:
    """Return a shell's words that put it into the cgroup and become the command."""
    return "; ".join([*(f"echo $$ > {folder / 'cgroup.procs'}" for folder in folders), 'exec "$0" "$@"'])


@contextlib.contextmanager
def _stopped_now_and_then(running: subprocess.Popen[str], cores: float) -> Iterator[None]:
    """Let a process run for its share of each period only."""
    over = threading.Event()

    def duty() -> None:
        while not over.wait(PERIOD_S * min(1.0, cores)):
            _send(running, signal.SIGSTOP)
            over.wait(PERIOD_S * max(0.0, 1.0 - cores))
            _send(running, signal.SIGCONT)

    keeper = threading.Thread(target=duty, name="quota", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
        _send(running, signal.SIGCONT)


def _send(running: subprocess.Popen[str], number: signal.Signals) -> None:
    if running.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, number)
