"""A job is deleted, or made anew under its name, while one looks at it."""

import pytest

from boathouse.cluster import errors
from tests.unit.services.reconciling import GONE, KEY, STALE, Desk, body

FILE = {"name": "stage.py", "configMapKeyRef": {"name": "code", "key": "stage.py"}}
"""Makes the first look at a job ask for a ConfigMap, and wait for the answer."""


@pytest.fixture
def desk():
    made = Desk()
    made.holds(body("u1"))
    return made


async def test_a_jobs_status_is_not_written_to_its_successor(desk):
    desk.holds(body("u1", 2, files=[FILE]))
    desk.meanwhile = lambda: desk.holds(body("u2", 5))
    assert await desk.look() == 0
    assert desk.written == []


async def test_the_look_at_a_job_that_was_deleted_meanwhile_ends_without_a_fault(desk):
    desk.holds(body("u1", 2, files=[FILE]))
    desk.meanwhile = lambda: desk.holds(None)
    assert await desk.look() is None
    assert desk.written == []


async def test_what_waits_of_a_job_is_withdrawn_when_its_successor_is_found_by_a_conflict(desk):
    await desk.look()
    desk.stored, desk.refusal = body("u2", 5), STALE
    desk.now_s += 100
    desk.jobs.on_object(body("u1", 4, suspend=True))  # a change to be written
    await desk.look()
    desk.refusal = None
    await desk.look()
    assert desk.withdrawn == ["u1"]
    assert desk.written[-1][0] == "u2"


async def test_a_successor_that_came_while_the_server_said_not_found_is_kept(desk):
    desk.holds(body("u1", 2, files=[FILE]))
    desk.meanwhile = lambda: desk.holds(body("u2", 5))
    desk.refusal = GONE
    assert await desk.look() == 0
    assert desk.jobs.key("u2") == KEY


async def test_a_job_is_not_given_up_because_something_else_was_not_found(desk):
    async def no_bundle(_namespace):
        raise GONE

    desk.ensure = no_bundle
    with pytest.raises(errors.NotFound):
        await desk.look()
    assert desk.jobs.key("u1") == KEY
    assert desk.withdrawn == []


async def test_a_job_that_is_gone_is_forgotten(desk):
    await desk.look()
    desk.stored, desk.refusal = None, GONE
    desk.jobs.on_object(body("u1", 4, suspend=True))
    assert await desk.look() is None
    assert (desk.withdrawn, desk.jobs.key("u1")) == (["u1"], None)


async def test_a_refusal_that_was_mended_does_not_stay_in_the_status(desk):
    await desk.look()
    admitted = desk.written[-1][1]["conditions"]
    desk.queue = "no-such-queue"
    await desk.look()
    assert desk.written[-1][1]["reason"] == "QueueNotFound"
    desk.queue = None
    await desk.look()
    assert desk.written[-1][1]["conditions"] == admitted
