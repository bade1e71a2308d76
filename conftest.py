"""What all tests share, those on a real cluster too: settings of hypothesis, and the times of each test's phases."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import resource
import time
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# pytest-asyncio looks for a current event loop and thereby makes one, which nobody closes: a ResourceWarning at some
# later garbage collection. After this there is none to find.
asyncio.set_event_loop(None)

# How long an example takes depends on what else the machine does, so no test judges it.
hypothesis.settings.register_profile("boathouse", deadline=None)
hypothesis.settings.load_profile("boathouse")

_HERTZ = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)
"""Columns of /proc/stat: idle, and waiting for a disk."""


def _clocks() -> tuple[float, float, float]:
    """Return the time, and the CPU time of this process with its ended children and of the machine, in seconds."""
    own_s = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ticks = [int(column) for column in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return time.monotonic(), own_s, (sum(ticks) - sum(ticks[_IDLE])) / _HERTZ


class PhaseTimes:
    """Measure set-up, call and tear-down of each test; keep them in a file next to the JUnit report of the run."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self._path = path
        self._began = _clocks()
        self._rows: list[dict[str, object]] = []

    def pytest_runtest_logstart(self) -> None:
        """Begin the set-up of a test."""
        self._began = _clocks()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        """Add what the phase took to its report, which xdist takes from a worker to the main process."""
        report = yield
        now = _clocks()
        report.took_s = [round(after - before, 4) for after, before in zip(now, self._began, strict=True)]
        self._began = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the times of a phase."""
        wall_s, own_cpu_s, machine_cpu_s = report.took_s
        self._rows.append(
            {
                "test": report.nodeid,
                "phase": report.when,
                "wall_s": wall_s,
                "own_cpu_s": own_cpu_s,
                "machine_cpu_s": machine_cpu_s,
            }
        )

    def pytest_sessionfinish(self) -> None:
        """Write the rows; `python -m tests.times` makes a table of them."""
        if self._path is not None:
            self._path.write_text("\n".join(map(json.dumps, self._rows)))


def pytest_configure(config: pytest.Config) -> None:
    """Measure the phases of all tests; a worker of xdist has no report of its own."""
    report = getattr(config.option, "xmlpath", None)
    is_worker = hasattr(config, "workerinput")
    config.pluginmanager.register(
        PhaseTimes(pathlib.Path(report).with_suffix(".times.jsonl") if report and not is_worker else None)
    )
