"""Where the time of cores and of drivers goes while `fake_programs.py` runs: for a benchmark of many applications."""

from __future__ import annotations

import asyncio
import collections
import itertools
import statistics
import time
from typing import TYPE_CHECKING

from boathouse.scheduling.pods.requests import cpu_milli

if TYPE_CHECKING:
    from benchmarks import fake_programs

SAMPLE_S = 0.5
STAGES = ("placed", "running", "requested", "registered", "done")
"""Moments of a driver: it has a node, runs, has requested an executor, works, and has ended."""


class CoreTime:
    """Sums up what the cores of all nodes do, and how long drivers are in each stage.

    Args:
        programs: The pods, and what runs in them.
        cores: Cores of all nodes.
        has_reservations: Whether the scheduler reserves room for the minimum of executors.
    """

    def __init__(self, programs: fake_programs.Programs, cores: float, *, has_reservations: bool) -> None:
        self._programs, self._cores, self._has_reservations = programs, cores, has_reservations
        self._used: dict[str, float] = collections.defaultdict(float)
        self._seconds = 0.0

    async def run(self) -> None:
        """Sample until cancelled."""
        last_s = time.monotonic()
        while True:
            await asyncio.sleep(SAMPLE_S)
            now_s = time.monotonic()
            for what, cores in self._sample().items():
                self._used[what] += (now_s - last_s) * cores
            self._seconds += now_s - last_s
            last_s = now_s

    def _sample(self) -> dict[str, float]:
        found: dict[str, float] = collections.defaultdict(float)
        for pod in self._programs.pods.values():
            if pod.spec.node_name:
                found[self._programs.activity(pod)] += _cores(pod)
        if self._has_reservations:
            found["reserved"] += sum(self._programs.reserved())
        found["free"] = self._cores - sum(found.values())
        return found

    def lines(self) -> list[str]:
        """Return the shares of the cores' time, and the median seconds of each stage of a driver."""
        whole = self._cores * self._seconds or 1.0
        shares = (
            f"{what} {100 * used / whole:.0f} %" for what, used in sorted(self._used.items(), key=lambda item: -item[1])
        )
        stages = (
            f"{before} to {after} {self._median_s(before, after):.1f} s" for before, after in itertools.pairwise(STAGES)
        )
        return [f"cores: {', '.join(shares)}", f"drivers (medians): {', '.join(stages)}"]

    def _median_s(self, before: str, after: str) -> float:
        moments = self._programs.moments.values()
        found = [one[after] - one[before] for one in moments if before in one and after in one]
        return statistics.median(found) if found else 0.0


def _cores(pod: fake_programs.Pod) -> float:
    requests = (one.resources.requests.get("cpu", "0") for one in pod.spec.containers)
    return sum(map(cpu_milli, requests)) / 1000
