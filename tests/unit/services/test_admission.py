"""How many unfinished jobs of a namespace are admitted, and what becomes of a job whose every write conflicts."""

import pytest

from boathouse.cluster import errors
from tests.unit.services.reconciling import KEY, STALE, Desk, body


@pytest.fixture
def desk():
    return Desk(tenantLimits={"maxUnfinishedJobs": 1})


def another(uid="u0", **status):
    made = body(uid)
    metadata = made["metadata"] | {"name": "earlier", "creationTimestamp": "2025-01-01T00:00:00Z"}
    return {**made, "metadata": metadata, "status": status}


def admitted(desk):
    (condition,) = [each for each in desk.written[-1][1]["conditions"] if each["type"] == "Admitted"]
    return condition["status"], condition["reason"], condition["message"]


async def test_a_job_beyond_the_limit_is_not_admitted_and_says_what_to_do(desk):
    desk.jobs.on_object(another())
    desk.holds(body())
    await desk.look()
    status, reason, message = admitted(desk)
    assert (status, reason) == ("False", "TooManyJobs")
    assert "exceed 1 objects" in message
    assert "tenantLimits.maxUnfinishedJobs" in message
    assert "earlier" not in message
    assert desk.submitted == []


async def test_a_job_that_waits_for_others_is_written_once(desk):
    desk.jobs.on_object(another())
    desk.holds(body())
    for _ in range(3):
        await desk.look()
        desk.now_s += 1000
    assert len(desk.written) == 1


async def test_it_is_admitted_when_an_earlier_one_has_ended(desk):
    desk.jobs.on_object(another())
    desk.holds(body())
    await desk.look()
    desk.jobs.on_deleted(another())
    await desk.look()
    assert admitted(desk)[:2] == ("True", "Admitted")
    assert len(desk.submitted) == 1


async def test_a_conflict_that_persists_backs_off(desk):
    desk.holds(body())
    desk.refusal = STALE
    assert await desk.look() == 0.0
    for _ in range(3):
        with pytest.raises(errors.Conflict):
            await desk.look()
    desk.refusal = None
    await desk.look()
    desk.now_s, desk.refusal = desk.now_s + 100, STALE
    desk.jobs.on_object(body("u1", 9, suspend=True))
    assert await desk.look() == 0.0
    assert desk.jobs.key("u1") == KEY


async def test_the_spec_of_a_job_that_waited_is_read_when_it_is_admitted(desk):
    desk.jobs.on_object(another())
    desk.holds(body())
    await desk.look()
    assert "spec" not in desk.jobs.get(KEY)
    desk.jobs.on_deleted(another())
    await desk.look()
    assert desk.jobs.get(KEY)["spec"] == desk.stored["spec"]
    assert len(desk.submitted) == 1
