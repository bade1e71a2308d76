"""Each guard matters: with it a scenario ends well, and without it the scenario finds what went wrong."""

from __future__ import annotations

import pytest

from tests.wire.guards import accounting, costs, endpoint, jobs, output, placing, pressure, queues

SUBJECTS = (accounting, costs, endpoint, jobs, output, placing, pressure, queues)
GUARDS = {name: guard for subject in SUBJECTS for name, guard in subject.GUARDS.items()}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
async def test_with_its_guards_a_scenario_ends_well(api, tmp_path, guard):
    assert await guard.scenario(api, tmp_path) == []


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
async def test_a_guard_that_is_taken_away_is_missed(api, tmp_path, monkeypatch, guard):
    guard.broken(monkeypatch)
    assert await guard.scenario(api, tmp_path)
