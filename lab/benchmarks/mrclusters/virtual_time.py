"""Virtual time: `time.time` and `time.monotonic` stand still while the process works, and jump while it would wait.

An event loop without anything to do jumps to its next timer. Server and client are in this process, so that a request
on its way is readable at once; a millisecond of real time is left for the kernel before each jump. What waits in a
thread would be overtaken: nothing here does.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import Any, Final

from typing_extensions import override

START_S: Final = 1767225600.0
"""2026-01-01T00:00:00Z: the date of the fake API server."""
_KERNEL_S: Final = 0.001


class _Clock:
    def __init__(self) -> None:
        self.passed_s = 0.0


_CLOCK: Final = _Clock()


def install() -> None:
    """Make the clocks of this process virtual; `time.perf_counter` and `time.process_time` stay real."""
    time.monotonic = lambda: _CLOCK.passed_s
    time.time = lambda: START_S + _CLOCK.passed_s


class _Selector(selectors.EpollSelector):
    """Waits in virtual time."""

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if found := super().select(0):
            return found
        if timeout is not None and timeout <= 0:
            return []
        if found := super().select(_KERNEL_S if timeout is not None else None):
            return found
        _CLOCK.passed_s += timeout or 0.0
        return []


class EventLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self, **options: Any) -> None:
        super().__init__(_Selector(), **options)
