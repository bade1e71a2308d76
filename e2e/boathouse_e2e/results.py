"""The results of a run of tests: a row for each phase of a test, from which a stopped run resumes."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from boathouse_e2e import paths

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

_HERTZ = os.sysconf("SC_CLK_TCK")
_IDLE = slice(3, 5)
"""Columns of /proc/stat: idle, and waiting for a disk."""
_PHASES = 3
SESSION = "session"
"""The phase of the row that a run writes at its end."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One phase of one test.

    Attributes:
        test: Its node ID; empty in the row of the whole run.
        phase: setup, call, teardown or session.
        outcome: passed, failed or skipped.
        date: When the phase ended: YYYY-MM-DD.
        sources: A hash of the sources that were tested.
        wall_s: How long it took.
        own_cpu_s: CPU time of pytest's process and of its children that have ended.
        machine_cpu_s: CPU time of all processes of the machine.
        properties: What the test recorded by `record_property`.
    """

    test: str
    phase: str
    outcome: str
    date: str
    sources: str
    wall_s: float
    own_cpu_s: float
    machine_cpu_s: float
    properties: dict[str, Any]


def read(path: pathlib.Path) -> list[Row]:
    """Return the rows of a file; of a test that ran again, the last ones. Empty if there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [Row(**json.loads(line)) for line in lines]
    runs = [row for row in rows if row.phase == SESSION]
    return [*{(row.test, row.phase): row for row in rows if row.phase != SESSION}.values(), *runs]


def passed(rows: Iterable[Row], sources: str) -> set[str]:
    """Return the node IDs of the tests whose three phases passed on these sources."""
    phases = collections.Counter(row.test for row in rows if (row.outcome, row.sources) == ("passed", sources))
    return {test for test, count in phases.items() if count == _PHASES}


def hash_of_sources(repository: pathlib.Path = paths.REPOSITORY) -> str:
    """Return a hash of all files that are or could be committed, but for documents. Empty outside a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GIT_INDEX_FILE": f"{folder}/index"}
        git = ["git", "-C", str(repository)]
        added = subprocess.run([*git, "add", "--all"], env=environment, capture_output=True, check=False)
        if added.returncode:
            return ""
        files = subprocess.check_output([*git, "ls-files", "--stage"], env=environment, text=True).splitlines()
    return hashlib.sha256("\n".join(file for file in files if not file.endswith(".md")).encode()).hexdigest()[:16]


class Recorder:
    """The plugin of pytest that measures the phases and leaves out what has passed.

    A worker of xdist adds what its tests took to their reports; the main process writes them.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._path: pathlib.Path | None = config.option.results
        self._resumes: bool = config.option.resume
        self._is_worker = hasattr(config, "workerinput")
        self._sources = hash_of_sources() if self._path else ""
        self._began = self._run_began = _clocks()
        if self._path and not self._is_worker:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if not self._resumes:
                self._path.unlink(missing_ok=True)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed before."""
        if self._path and self._resumes:
            done = passed(read(self._path), self._sources)
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
            items[:] = [item for item in items if item.nodeid not in done]

    def pytest_runtest_logstart(self) -> None:
        """Begin the set-up of a test."""
        self._began = _clocks()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add what the phase took to its report."""
        report = yield
        now = _clocks()
        vars(report)["took_s"] = [round(after - before, 4) for after, before in zip(now, self._began, strict=True)]
        self._began = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the row of a phase."""
        took_s = getattr(report, "took_s", (report.duration, 0.0, 0.0))  # without it, the worker died
        properties = dict(report.user_properties) if report.when == "teardown" else {}
        self._write(_without_group(report.nodeid), str(report.when), report.outcome, took_s, properties)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the row of the run."""
        took_s = [round(after - before, 4) for after, before in zip(_clocks(), self._run_began, strict=True)]
        self._write("", SESSION, "passed" if exitstatus == pytest.ExitCode.OK else "failed", took_s, {})

    def _write(
        self, test: str, phase: str, outcome: str, took_s: Sequence[float], properties: dict[str, object]
    ) -> None:
        if not self._path or self._is_worker:
            return
        wall_s, own_cpu_s, machine_cpu_s = took_s
        row = Row(
            test=test,
            phase=phase,
            outcome=outcome,
            date=dt.datetime.now(tz=dt.UTC).date().isoformat(),
            sources=self._sources,
            wall_s=wall_s,
            own_cpu_s=own_cpu_s,
            machine_cpu_s=machine_cpu_s,
            properties=properties,
        )
        with self._path.open("a") as file:
            file.write(json.dumps(dataclasses.asdict(row)) + "\n")


def _without_group(test: str) -> str:
    """Return a node ID without the group that xdist adds to it."""
    return test.rpartition("@")[0] if test.rfind("@") > test.rfind("]") else test


def _clocks() -> tuple[float, float, float]:
    """Return the time, and the CPU time of this process with its ended children and of the machine, in seconds."""
    own_s = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ticks = [int(column) for column in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return time.monotonic(), own_s, (sum(ticks) - sum(ticks[_IDLE])) / _HERTZ
