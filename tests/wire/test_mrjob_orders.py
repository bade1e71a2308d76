"""Orders to single tasks through the progress endpoint."""

import asyncio

import msgspec
import pytest

from boathouse_task import contract
from tests.builders.operators.endpoints import JOB, serving_endpoint, state

ORDER = contract.SuspendOrder(id="7-1", for_s=60.0)
ACKNOWLEDGED = msgspec.json.encode(contract.Acknowledgement(id=ORDER.id))


@pytest.fixture
async def endpoint(api, client, tmp_path):
    async with serving_endpoint(api, client, tmp_path) as running:
        yield running


@pytest.fixture
def token(endpoint):
    found = endpoint.add("p")
    endpoint.update(state(0, 0))
    return found


def acknowledge(endpoint, token, body=ACKNOWLEDGED):
    return endpoint.ask("POST", "demo/job-1/tasks/p/acknowledge", token, data=body)


async def test_a_task_polls_its_order_and_acknowledges_it(endpoint, token, eventually):
    runtime, version = endpoint.runtime("p", token), endpoint.orders._jobs[JOB].orders.version
    polling = asyncio.create_task(asyncio.to_thread(runtime.orders, version))
    await eventually(lambda: endpoint.orders._jobs[JOB].polls)
    suspending = asyncio.create_task(endpoint.orders.suspend(JOB, "p", ORDER))
    assert (await polling).suspend == ORDER
    await asyncio.to_thread(runtime.acknowledge, contract.Acknowledgement(id=ORDER.id))
    assert await suspending == ""


async def test_an_acknowledgement_after_a_restart_of_the_operator_is_accepted_and_changes_nothing(endpoint, token):
    assert (await acknowledge(endpoint, token))[0] == 200


async def test_acknowledgements_are_limited_in_size_and_rate(endpoint, token):
    assert (await acknowledge(endpoint, token, b"x" * 257))[0] == 413
    statuses = [(await acknowledge(endpoint, token))[0] for _ in range(2)]
    assert statuses == [200, 429]
    assert endpoint.count("progress_rejections_total", reason="TooOften") == 1


async def test_a_malformed_acknowledgement_is_refused(endpoint, token):
    assert (await acknowledge(endpoint, token, b"[]"))[0] == 400
