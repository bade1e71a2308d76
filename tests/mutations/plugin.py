"""Run chosen tests in the given order, each within its limits: a plugin of pytest for a run with a fault.

A test that exceeds a limit ends the process at once. A fault may make the code ignore exceptions, so none is raised.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Chosen:
    """Runs the chosen tests and tells, line by line, which test begins and how the run ends.

    Args:
        tests: Limits by node ID, in the order of the run: `cpu_s` and `wall_s`.
        tell: Takes each line.
    """

    def __init__(self, tests: Sequence[Mapping[str, Any]], tell: Callable[[bytes], object]) -> None:
        self._tests = {test["name"]: test for test in tests}
        self._tell = tell

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out all other tests of the files."""
        places = {name: place for place, name in enumerate(self._tests)}
        items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Limit a test."""
        test = self._tests[item.nodeid]
        self.tell(begins=item.nodeid)

        def exceed(number: int, _frame: object) -> None:
            limit = "wall_s" if number == signal.SIGALRM else "cpu_s"
            self.tell(fails=item.nodeid, limit=f"{limit} {test[limit]:.0f}")
            os._exit(1)

        signal.signal(signal.SIGALRM, exceed)
        signal.signal(signal.SIGPROF, exceed)
        signal.setitimer(signal.ITIMER_REAL, test["wall_s"])
        signal.setitimer(signal.ITIMER_PROF, test["cpu_s"])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell the first failure."""
        if report.failed:
            self.tell(fails=report.nodeid, text=report.longreprtext[-2000:])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell that a file of tests cannot be imported."""
        if report.failed:
            self.tell(fails=report.nodeid, text=report.longreprtext[-2000:])

    def tell(self, **what: object) -> None:
        """Write a line."""
        self._tell(json.dumps(what).encode() + b"\n")
