"""A part that harms is switched off, for the program that it harms."""

import numpy as np
import pytest

from boathouse_policies.profiles.guard import FALSE_ALARMS, LEAST_NAMESPACES, RETRY_S, Guard, Part, Record, key_of
from tests.builders import core
from tests.builders.core_elastic import SIZE, ElasticShell, elastic_estimates

MOST_BLOCKS = 16
"""Decisions after which a part whose costs are estimated at a tenth is off."""


def job(namespace="ns", kind="etl"):
    return core.job("job", namespace=namespace, kind=kind)


def harm(guard, of, *, part=Part.MEMORY, times=MOST_BLOCKS, estimated=0.1, now_s=0.0):
    """Decisions whose cost was estimated at a part of what it is, and that seemed to be just worth it."""
    for _ in range(times):
        guard.ended(key_of(part, of), estimated * 10.0, 10.0, now_s)


def test_costs_that_are_estimated_at_a_tenth_switch_a_part_off_for_the_program():
    guard = Guard()
    harm(guard, job())
    assert not guard.allows(Part.MEMORY, job(), 0.0)
    assert guard.allows(Part.REFUSAL, job(), 0.0)
    assert guard.allows(Part.MEMORY, job(kind="other"), 0.0)
    assert guard.of_policy()["memoryOff"] == [1.0]


def test_a_part_that_is_worth_its_cost_on_average_is_hardly_ever_switched_off():
    random, runs = np.random.default_rng(1), 400
    alarms = 0
    for _ in range(runs):
        record = Record()
        worth = np.where(random.random(300) < 0.2, -0.8, 0.2)  # rare harm, 0 on average
        alarms += any(record.add(float(each), 0.0) for each in worth)
    assert alarms / runs <= FALSE_ALARMS


def test_it_tries_again_and_is_then_off_for_twice_as_long():
    guard = Guard()
    harm(guard, job())
    assert guard.allows(Part.MEMORY, job(), RETRY_S)
    harm(guard, job(), now_s=RETRY_S, times=2 * MOST_BLOCKS)
    assert not guard.allows(Part.MEMORY, job(), RETRY_S + 1.5 * RETRY_S)


def test_a_tenant_switches_nothing_off_for_others():
    guard = Guard()
    for number in range(100):
        harm(guard, job("hostile", f"program-{number}"))
    assert guard.allows(Part.MEMORY, job("victim"), 0.0)


def test_what_harms_most_namespaces_is_off_in_the_cluster():
    guard = Guard()
    for number in range(LEAST_NAMESPACES):
        assert guard.allows(Part.MEMORY, job("new"), 0.0)
        harm(guard, job(f"ns-{number}"))
    assert not guard.allows(Part.MEMORY, job("new"), 0.0)


def test_what_was_switched_off_is_so_after_a_restart():
    before, after = Guard(), Guard()
    harm(before, job())
    after.load(before.dump())
    assert not after.allows(Part.MEMORY, job(), 0.0)


@pytest.mark.parametrize("rows", [None, [None], [["memory", "ns", "etl", 99, 1.0]], [["nothing", "ns", "etl", 1, 1.0]]])
def test_a_dump_that_is_not_valid_is_left_out(rows):
    guard = Guard()
    guard.load({"off": rows})
    assert guard.allows(Part.MEMORY, job(), 0.0)


def test_the_profile_stops_giving_less_memory_to_a_program_whose_penalty_is_ten_times_what_was_said(monkeypatch):
    monkeypatch.setattr("boathouse_policies.yarn_me.decide.Elasticity.ends_in_time", lambda *_: True)
    shell = ElasticShell()
    shell.leave("n0", cpu=4000, gib=1)
    smaller = 0
    for number in range(2 * MOST_BLOCKS):
        estimates = elastic_estimates(SIZE, 10.0)
        shell.submit(f"job-{number}", estimates=estimates, kind="etl")
        plan = shell.cycle()
        for placed in core.placements(plan):
            smaller += 1
            shell.finish(placed, 300.0)
    assert 0 < smaller <= MOST_BLOCKS
