"""Pause a reduce that lacks map output, while its pod's CPU is lent to others.

A gate stops the task's threads. The pause ends when the container's own CPU limit rises after it was lowered, or at the
order's deadline. Neither needs a connection, because a container with 10m has 10 ms of CPU time in a second.
"""

import contextlib
import enum
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from boathouse_task import contract

_LOOK_S = 0.1
_LEAST_QUOTA_US = 1000  # the smallest quota that the kernel accepts


class CpuLimit:
    """The container's own CPU limit, by descriptors of the quota's file and, in cgroup v1, of the period's.

    The files stay open, because opening them costs most of a look.
    """

    def __init__(self, descriptors: list[int]) -> None:
        self._descriptors = descriptors

    def is_suspended(self) -> bool:
        """Return whether the limit is a suspended task's. A limit that cannot be read any more is not."""
        quota_us, period_us = self._read()
        return 0 <= quota_us * 1000 <= contract.SUSPENDED_LIMIT_MILLI * period_us

    def can_suspend(self) -> bool:
        """Return whether the kernel accepts a suspended task's limit: not with a period below 100 ms."""
        return self._read()[1] * contract.SUSPENDED_LIMIT_MILLI >= _LEAST_QUOTA_US * 1000

    def _read(self) -> tuple[int, int]:
        """Return quota and period in microseconds; a quota of -1 is no limit, a period of 0 is unknown."""
        try:
            quota, period = b" ".join(os.pread(descriptor, 64, 0) for descriptor in self._descriptors).split()
            return -1 if quota == b"max" else int(quota), int(period)
        except (OSError, ValueError):
            return -1, 0


@contextlib.contextmanager
def cpu_limit(cgroup: Path) -> Iterator[CpuLimit | None]:
    """Open the container's CPU limit below /sys/fs/cgroup; None if it cannot show that the task is suspended."""
    versions = [cgroup / "cpu.max"], [cgroup / "cpu" / name for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    paths = next((paths for paths in versions if all(path.exists() for path in paths)), [])
    with contextlib.ExitStack() as stack:
        limit = CpuLimit([])
        with contextlib.suppress(OSError):
            limit = CpuLimit([stack.enter_context(path.open("rb", buffering=0)).fileno() for path in paths])
        yield limit if limit.can_suspend() else None


class Ended(enum.StrEnum):
    """Reason why a pause ended."""

    NOT_SHRUNK = "NotShrunk"  # the CPU limit was not lowered within `contract.SHRINKS_WITHIN_S`
    LIMIT_RAISED = "LimitRaised"
    DEADLINE = "Deadline"


class Course:
    """Decides when a pause ends, from the time of the acknowledgement and the deadline. Pure."""

    def __init__(self, *, now_s: float, until_s: float) -> None:
        self._shrink_until_s, self._until_s = now_s + contract.SHRINKS_WITHIN_S, until_s
        self._was_suspended = False

    def look(self, now_s: float, *, is_suspended: bool) -> Ended | None:
        """Return why the pause ends now, or None."""
        if now_s >= self._until_s:
            return Ended.DEADLINE
        if self._was_suspended and not is_suspended:
            return Ended.LIMIT_RAISED
        self._was_suspended = is_suspended
        return None if is_suspended or now_s < self._shrink_until_s else Ended.NOT_SHRUNK


class Pause:
    """Gate of a task's threads, and the orders that close it.

    Attributes:
        order: the last order that the task carried out or refused; an order is carried out once.
        suspended_s: how long the task has paused in all.
    """

    def __init__(
        self, *, sleep: Callable[[float], None] = time.sleep, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._sleep, self._monotonic = sleep, monotonic
        self._changed = threading.Condition()
        self._is_closed, self._working, self.order, self.suspended_s = False, 0, "", 0.0

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Do a short piece of work, such as one request; wait first while the task pauses."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_closed)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def gated(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks; wait before each while the task pauses."""
        source = iter(chunks)
        while True:
            with self.working():
                chunk = next(source, None)
            if chunk is None:
                return
            yield chunk

    def carry_out(
        self,
        order: contract.SuspendOrder,
        *,
        cgroup: Path,
        lacks_maps: bool,
        acknowledge: Callable[[contract.Acknowledgement], None],
    ) -> Ended | contract.SuspendRefusal:
        """Pause, acknowledge and wait for the end of the pause; or refuse, for example if the task lacks no map output.

        A lost acknowledgement does not end the pause: the operator may have got it and lower the limit.
        """
        self.order = order.id
        start_s = self._monotonic()
        with cpu_limit(cgroup) as limit:
            refusal = self._refusal(lacks_maps=lacks_maps, can_see_limit=limit is not None)
            if refusal is not None:
                acknowledge(contract.Acknowledgement(id=order.id, refused=refusal.value))
                return refusal
            assert limit is not None
            try:
                acknowledge(contract.Acknowledgement(id=order.id))
                return self._wait(limit, start_s + min(order.for_s, contract.MOST_SUSPENDED_S))
            finally:
                self._open()
                self.suspended_s += self._monotonic() - start_s

    def _refusal(self, *, lacks_maps: bool, can_see_limit: bool) -> contract.SuspendRefusal | None:
        """Close the gate and return None, or return why the task does not pause."""
        if not (lacks_maps and can_see_limit):
            return contract.SuspendRefusal.NO_CGROUP if lacks_maps else contract.SuspendRefusal.PHASE_PASSED
        with self._changed:
            self._is_closed = True
            if self._changed.wait_for(lambda: not self._working, contract.STOPS_WITHIN_S):
                return None
        self._open()
        return contract.SuspendRefusal.BUSY

    def _open(self) -> None:
        with self._changed:
            self._is_closed = False
            self._changed.notify_all()

    def _wait(self, limit: CpuLimit, until_s: float) -> Ended:
        course = Course(now_s=self._monotonic(), until_s=until_s)
        while not (end := course.look(self._monotonic(), is_suspended=limit.is_suspended())):
            self._sleep(_LOOK_S)
        return end
