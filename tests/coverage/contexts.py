"""Tell coverage.py which test runs: a plugin of pytest, in each worker of xdist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import coverage

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = "below "
"""Begins the context of a fixture that several tests share; the rest is the file or folder of these tests."""

_context = ""


def _switch(context: str) -> str:
    """Name what runs from now on. Returns what ran before."""
    global _context
    before, _context = _context, context
    recorder = coverage.Coverage.current()
    if recorder is not None:
        recorder.switch_context(context)
    return before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record a test with its fixtures under its node ID."""
    before = _switch(item.nodeid)
    try:
        return (yield)
    finally:
        _switch(before)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    """Record a fixture of a module or session for all tests that may use it, not for the first only."""
    if fixturedef.scope == "function":
        return (yield)
    before = _switch(SHARED + fixturedef.baseid)
    try:
        return (yield)
    finally:
        _switch(before)
