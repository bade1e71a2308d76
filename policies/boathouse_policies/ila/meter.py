"""What a node or a host uses, and has used: plain numbers, for they change with every event."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """What had been used by some time.

    Attributes:
        cpu: CPU seconds.
        read: Seconds of the host's disks, reading.
        write: The same, writing.
    """

    cpu: float
    read: float
    write: float


ZERO = Reading(0.0, 0.0, 0.0)


class Meter:
    """Adds up use over time.

    Attributes:
        cpu: CPUs in use.
        read: Share of the host's disks in use, reading.
        write: The same, writing.
    """

    __slots__ = ("_cpu_s", "_read_s", "_since_s", "_write_s", "cpu", "read", "write")

    def __init__(self, now_s: float) -> None:
        self.cpu = self.read = self.write = 0.0
        self._cpu_s = self._read_s = self._write_s = 0.0
        self._since_s = now_s

    def change(self, by: tuple[float, float, float], step: float, now_s: float) -> None:
        """From now on, so much more (or less) is used."""
        self._advance(now_s)
        cpu, read, write = by
        self.cpu += step * cpu
        self.read += step * read
        self.write += step * write

    def reading(self, now_s: float) -> Reading:
        """What has been used until now."""
        self._advance(now_s)
        return Reading(self._cpu_s, self._read_s, self._write_s)

    def _advance(self, now_s: float) -> None:
        passed_s = now_s - self._since_s
        if passed_s:
            self._cpu_s += passed_s * self.cpu
            self._read_s += passed_s * self.read
            self._write_s += passed_s * self.write
            self._since_s = now_s


def mean(before: Reading, after: Reading, seconds: float) -> Reading:
    """The mean use between two readings."""
    return Reading(
        (after.cpu - before.cpu) / seconds, (after.read - before.read) / seconds, (after.write - before.write) / seconds
    )
