"""A part that harms is switched off, for the program that it harms."""

import json

import numpy as np
import pytest

from boathouse_policies.profiles.guard import (
    FALSE_ALARMS,
    LEAST_NAMESPACES,
    PROGRAMS_KEPT,
    RETRY_S,
    Effect,
    Guard,
    Part,
    Record,
    key_of,
)
from tests.builders import core
from tests.builders.core_elastic import SIZE, ElasticShell, elastic_estimates

MOST_BLOCKS = 16
"""Decisions after which a part whose costs are estimated at a tenth is off."""


def job(namespace="ns", kind="etl"):
    return core.job("job", namespace=namespace, kind=kind)


def harm(guard, of, *, part=Part.MEMORY, times=MOST_BLOCKS, estimated=0.1, now_s=0.0):
    """Decisions whose cost was estimated at a part of what it is, and that seemed to be just worth it."""
    for _ in range(times):
        guard.ended(key_of(part, of), 0.0, estimated * 10.0, 10.0, now_s)


@pytest.mark.parametrize("part", Part)
def test_costs_that_are_estimated_at_a_tenth_switch_a_part_off_for_the_program(part):
    guard = Guard()
    harm(guard, job(), part=part)
    assert [guarded_part for guarded_part in Part if not guard.allows(guarded_part, job(), 0.0)] == [part]
    assert guard.allows(part, job(kind="other"), 0.0)
    assert guard.of_policy() == {f"{part}Off": [1.0]}


def test_what_decisions_were_to_save_and_saved_is_counted():
    guard = Guard()
    guard.ended(key_of(Part.MEMORY, job()), 5.0, 20.0, 12.0, 0.0)
    guard.ended(key_of(Part.MEMORY, job(kind="other")), 1.0, 3.0, 6.0, 0.0)
    assert guard.effects[Part.MEMORY] == Effect(decisions=2, predicted_s=6.0, realised_s=5.0)


def test_what_is_off_says_which_decisions_did_harm_and_until_when():
    guard = Guard()
    harm(guard, job())
    (off,) = guard.off(job(), 0.0)
    assert (off.part, off.until_s) == (Part.MEMORY, RETRY_S)
    assert 0 < off.effect.decisions <= MOST_BLOCKS
    assert off.effect.realised_s == -9.0 * off.effect.decisions
    assert guard.off(job(), RETRY_S) == guard.off(job(kind="other"), 0.0) == []


def rare_harm(random, count):
    """Worth of decisions that are 0 on average."""
    return np.where(random.random(count) < 0.2, -0.8, 0.2)


def noisy_run_times(random, count):
    """Worth of smaller maps that cost on average what they save, and whose run times vary as those of real tasks do."""
    cost = 10.0 * random.lognormal(-0.5 * 0.8**2, 0.8, count)
    return (10.0 - cost) / (10.0 + cost)


@pytest.mark.parametrize("draw", [rare_harm, noisy_run_times])
def test_a_part_that_is_worth_its_cost_on_average_is_hardly_ever_switched_off(draw):
    random, runs = np.random.default_rng(1), 400
    alarms = 0
    for _ in range(runs):
        record = Record()
        alarms += any(record.add(worth, 0.0) for worth in draw(random, 300).tolist())
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
    assert guard.off(job("victim"), 0.0) == []


def test_a_tenant_of_many_programs_does_not_switch_on_what_is_off_for_others():
    guard = Guard()
    harm(guard, job("victim"))
    for number in range(2 * PROGRAMS_KEPT):
        harm(guard, job("hostile", f"program-{number}"), times=1)
    assert not guard.allows(Part.MEMORY, job("victim"), 0.0)


def test_what_harms_most_namespaces_is_off_in_the_cluster():
    guard = Guard()
    for number in range(LEAST_NAMESPACES):
        assert guard.allows(Part.MEMORY, job("new"), 0.0)
        harm(guard, job(f"ns-{number}"))
    assert not guard.allows(Part.MEMORY, job("new"), 0.0)
    (off,) = guard.off(job("new"), 0.0)
    assert (off.until_s, off.effect) == (RETRY_S, Effect())


def test_a_restart_changes_nothing():
    before, after = Guard(), Guard()
    for number in range(LEAST_NAMESPACES):
        harm(before, job(f"ns-{number}"))
    harm(before, job(kind="other"), times=2)
    after.load(json.loads(json.dumps(before.dump())))
    assert after.dump() == before.dump()
    assert [after.off(job(name), 0.0) for name in ("ns-0", "new")] == [
        before.off(job(name), 0.0) for name in ("ns-0", "new")
    ]


ROW = ["memory", "ns", "etl", 1, 9.0, [1.0] * 4, [1, 0.0, 0.0], [1, 0.0, 0.0]]


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [None],
        *([[*ROW[:place], value, *ROW[place + 1 :]]] for place, value in [(0, "no"), (3, 99), (4, None), (5, [1.0])]),
    ],
)
def test_a_dump_that_is_not_valid_is_left_out(rows):
    guard = Guard()
    guard.load({"programs": rows, "off": [["no", 9.0], ["memory", None], None]})
    assert guard.allows(Part.MEMORY, job(), 0.0)


def test_a_dump_that_is_valid_is_taken_over():
    guard = Guard()
    guard.load({"programs": [ROW], "off": [["refusal", 9.0]]})
    assert [off.part for off in guard.off(job(), 0.0)] == [Part.MEMORY, Part.REFUSAL]


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
