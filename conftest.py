"""What all tests share, those on a real cluster too: settings of hypothesis, and results that a later run resumes."""

from __future__ import annotations

import asyncio
import pathlib
from typing import TYPE_CHECKING

import hypothesis
import structlog

from boathouse_e2e import results

if TYPE_CHECKING:
    import pytest

# pytest-asyncio looks for a current event loop and thereby makes one, which nobody closes: a ResourceWarning at some
# later garbage collection. After this there is none to find.
asyncio.set_event_loop(None)

# How long an example takes depends on what else the machine does, so no test judges it. `make test` tries the same
# examples each time, and `make test-search` others.
hypothesis.settings.register_profile("boathouse", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None, print_blob=True)
hypothesis.settings.load_profile("boathouse")

# Tracebacks as structlog shows them by default, with colors and variables, take a large part of some tests' CPU time.
_PLAIN = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _PLAIN])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the recorded results."""
    parser.addoption("--results", type=pathlib.Path, help="write a row for each phase of each test to this JSONL file")
    parser.addoption("--resume", action="store_true", help="leave out what passed on the same sources in --results")


def pytest_configure(config: pytest.Config) -> None:
    """Record the results of this run."""
    config.pluginmanager.register(results.Recorder(config))
