"""A status that the API server refuses as invalid must not keep a job where it is."""

import pytest

from boathouse.cluster import errors
from tests.unit.services.reconciling import Desk, body

INVALID = errors.Invalid(422, "Invalid", "status.counters.a.b: Invalid value")


@pytest.fixture
def desk():
    made = Desk()
    made.holds({**body(), "status": {"phase": "Map", "counters": {"a": {"b": 1}}}})
    return made


def refusing(desk, when):
    """Let the API server refuse a status that fulfils a condition."""
    written = desk.patch_status

    async def patch_status(resource, name, status, namespace, **more):
        if when(status):
            raise INVALID
        return await written(resource, name, status, namespace, **more)

    desk.patch_status = patch_status


async def test_a_status_that_is_refused_is_written_without_its_counters_and_failures(desk):
    refusing(desk, lambda status: status["counters"])
    await desk.look()
    ((_, status),) = desk.written
    assert (status["counters"], status["lastFailures"], status["phase"]) == (None, None, "Pending")
    assert "StatusRefused" in desk.events


async def test_what_was_dropped_is_not_written_again_at_the_next_look(desk):
    refusing(desk, lambda status: status["counters"])
    await desk.look()
    desk.now_s += 100
    await desk.look()
    assert desk.events.count("StatusRefused") == 1


async def test_a_status_that_is_refused_without_its_free_parts_too_is_an_error(desk):
    refusing(desk, lambda _: True)
    with pytest.raises(errors.Invalid):
        await desk.look()


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Rebalancing", "currentStep": 50, "conditions": ["x", {"type": "T"}]},
        {
            "currentStep": "two",
            "reduces": {"total": "x"},
            "plan": {"splits": 10**12, "digest": "d", "bytes": 0, "shards": 1},
        },
    ],
    ids=["of a newer version", "nonsense"],
)
async def test_a_job_with_a_status_that_cannot_be_read_is_looked_at_without_a_fault(status):
    desk = Desk()
    desk.holds({**body(), "status": status})
    await desk.look()
    assert desk.written[-1][1]["phase"] == "Pending"


async def test_a_quantity_with_an_absurd_exponent_is_no_fault():
    desk = Desk()
    desk.holds(body(splitMaxSize="1e999999999999999999"))
    await desk.look()
    assert len(desk.written) == 1


async def test_a_write_that_a_quota_refuses_is_told_in_an_event():
    desk = Desk()
    desk.holds(body())
    desk.refusal = errors.Forbidden(403, "Forbidden", "exceeded quota")
    with pytest.raises(errors.Forbidden):
        await desk.look()
    assert desk.events == ["WriteRefused"]
