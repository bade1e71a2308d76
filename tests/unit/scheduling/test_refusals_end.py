"""Whatever an API server refuses, and whenever: once it accepts pods again, everything that waits starts soon."""

import asyncio
import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse.cluster import errors
from boathouse.scheduling import jobs, refusals
from tests.builders.operators.desks import Desk, task_pod
from tests.builders.operators.refusing import EVENTS, QUOTA, REFUSALS, SUBMITTED, play

RECOVERY_S = 300.0
"""The longest backoff is 30 s; then probes of what fits on no node take their turns, up to 14 of them."""


@pytest.mark.parametrize("profile", ["fair", "boathouse"])
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("what", SUBMITTED[:-1])
async def test_what_was_refused_starts_when_the_cause_is_gone(what, refusal, profile):
    world = await play([refusal, what, what, what, "wait", "wait"], recovery_s=RECOVERY_S, profile=profile)
    assert (world.missing, world.holds) == ([], [])


@pytest.mark.parametrize("first", ["quota", "webhook", "binds"])
async def test_every_short_sequence_of_refusals_ends_with_all_pods_running(first):
    for events in itertools.product(EVENTS, repeat=2):
        world = await play([first, *events], recovery_s=RECOVERY_S)
        assert (world.missing, world.holds) == ([], []), (first, *events)


@hypothesis.given(events=st.lists(st.sampled_from(EVENTS), min_size=3, max_size=14))
@hypothesis.example(events=["limit range for tasks", "job", *["app"] * 6, "job", "job", "giant"])  # takes 150 s
@hypothesis.settings(deadline=None)
def test_any_sequence_of_refusals_ends_with_all_pods_running(events):
    world = asyncio.run(play(events, recovery_s=RECOVERY_S))
    assert (world.missing, world.holds) == ([], [])


async def test_a_good_application_starts_beside_three_that_are_refused_for_good():
    world = await play(["webhook for drivers", "app", "app", "app", "wait", "job"], recovery_s=RECOVERY_S)
    assert [one for one in world.wanted if "job" in one and one in world.missing] == []


async def test_refusals_stay_rare_while_a_namespace_is_refused():
    world = await play(["quota", *["app"] * 5, *["job"] * 5, *["wait"] * 4], recovery_s=0.0)
    assert len([at_s for at_s in world.refused_s if at_s > 30.0]) <= 7  # one in 30 s


async def test_a_probe_that_is_found_on_another_node_does_not_keep_the_others_waiting():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit("full/t1", "full/t2", "full/t3", cpu_milli=1)
        await desk.decide()
        for what in ("t1 n1", "t2 n1"):
            await desk.answer("create", what, QUOTA)
        desk.now_s = 31.0
        assert await desk.decide() == [("create", "t3 n1")]
        await desk.answer("create", "t3 n1", errors.AlreadyExists(409, "AlreadyExists", ""))
        await desk.answer("get", "t3", task_pod("full/t3", node="n2", revision=1))
        assert await desk.decide() == [("create", "t1 n1")]


async def test_a_hold_whose_probes_fit_on_no_node_ends_by_itself():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit("full/t1", cpu_milli=1)
        await desk.decide()
        await desk.answer("create", "t1 n1", QUOTA)
        desk.delete_node("n1")
        for desk.now_s in (31.0, 31.0 + refusals.UNANSWERED_S):
            assert len(desk.scheduler.state.jobs.refused) == 1
            await desk.decide()
        assert len(desk.scheduler.state.jobs.refused) == 0
        assert desk.scheduler.diagnosis("j") is None or desk.scheduler.diagnosis("j").reason != "QuotaExceeded"


async def test_another_probe_is_due_when_one_has_found_no_node_for_a_while():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit("full/t1", "full/t2", cpu_milli=1)
        await desk.decide()
        for what in ("t1 n1", "t2 n1"):
            await desk.answer("create", what, QUOTA)
        desk.delete_node("n1")
        desk.now_s = 31.0
        await desk.decide()
        assert desk.scheduler.state.jobs.next_s() == 31.0 + jobs.PROBE_PATIENCE_S
