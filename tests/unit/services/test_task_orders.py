"""Orders to single tasks, beside the orders of their job."""

import asyncio

import pytest

from boathouse.services.mrjob import second_attempts, task_orders
from boathouse.services.mrjob.job_state import JobState
from boathouse_policies import model
from boathouse_task import contract
from boathouse_task.contract import TaskType
from tests.builders import mrjobs

pytestmark = pytest.mark.looptime

JOB = "u1"
ORDER = contract.SuspendOrder(id="7-1", for_s=60.0)


def mapping_state(*winners):
    return JobState(phase="Map", stages={TaskType.MAP: mrjobs.stage_state(*winners)})


@pytest.fixture
def orders():
    found = task_orders.TaskOrders()
    found.update(JOB, "demo", mapping_state(0, 0), ["r-0", "r-1"])
    return found


def poll(orders, pod="r-0", *, carried_out="", wait_s=30.0):
    since = orders._jobs[JOB].orders.version
    request = task_orders.Poll(uid=JOB, pod=pod, since=since, carried_out=carried_out)
    return asyncio.ensure_future(orders.orders(request, wait_s))


def order_suspension(orders, pod="r-0", order=ORDER):
    return asyncio.ensure_future(
        second_attempts.Control(JOB, orders, seconds=None).suspend(model.TaskId(f"demo/{pod}"), order)
    )


async def acknowledged(orders, suspending, *, order=ORDER.id, refused=""):
    orders.acknowledge(JOB, "r-0", contract.Acknowledgement(id=order, refused=refused))
    return await suspending


async def test_an_order_wakes_the_poll_of_its_task_alone_and_at_once(orders, monkeypatch):
    monkeypatch.setattr(task_orders, "COALESCE_S", 30.0)
    mine, other = poll(orders), poll(orders, "r-1")
    await asyncio.sleep(0)
    suspending = order_suspension(orders)
    assert (await mine).suspend == ORDER
    assert not other.done()
    other.cancel()
    assert await acknowledged(orders, suspending) == ""


async def test_an_order_ends_the_time_in_which_finished_maps_are_collected(orders, monkeypatch):
    monkeypatch.setattr(task_orders, "COALESCE_S", 30.0)
    polled = poll(orders)
    await asyncio.sleep(0)
    orders.update(JOB, "demo", mapping_state(1, 0), ["r-0"])
    await asyncio.sleep(0)
    assert not polled.done()
    suspending = order_suspension(orders)
    assert (await polled).suspend == ORDER
    assert contract.decode_bitmap(polled.result().maps_done, 2) == {0}
    await acknowledged(orders, suspending)


async def test_polls_of_768_tasks_are_not_woken_by_an_order_to_one(orders):
    polls = [poll(orders, f"r-{number}") for number in range(768)]
    await asyncio.sleep(0)
    suspending = order_suspension(orders, "r-500")
    done, waiting = await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
    assert ([finished_poll.result().suspend for finished_poll in done], len(waiting)) == ([ORDER], 767)
    for waiting_poll in waiting:
        waiting_poll.cancel()
    assert await suspending == "NotAcknowledged"


async def test_a_task_that_received_an_order_does_not_get_it_twice(orders):
    suspending = order_suspension(orders)
    await asyncio.sleep(0)
    assert (await poll(orders)).suspend == ORDER
    assert (await poll(orders, carried_out=ORDER.id, wait_s=0.001)).suspend is None
    await acknowledged(orders, suspending)


async def test_a_repeated_poll_gets_an_order_whose_response_was_lost(orders):
    suspending = order_suspension(orders)
    await asyncio.sleep(0)
    assert [(await poll(orders)).suspend for _ in range(2)] == [ORDER, ORDER]
    await acknowledged(orders, suspending)


async def test_a_task_whose_runtime_takes_no_orders_for_itself_does_not_get_one(orders):
    suspending, polled = order_suspension(orders), poll(orders, carried_out=None, wait_s=0.02)
    assert (await polled).suspend is None
    assert await suspending == "NotPolling"


async def test_a_task_that_does_not_poll_or_not_acknowledge_is_not_suspended(orders):
    assert await order_suspension(orders) == "NotPolling"
    suspending, polled = order_suspension(orders), poll(orders)
    assert (await polled).suspend == ORDER
    assert await suspending == "NotAcknowledged"


async def test_a_refusal_of_the_task_is_passed_on_as_one_of_the_closed_set(orders):
    for reason, passed_on in (("PhasePassed", "PhasePassed"), ("<b>", "Busy")):
        suspending = order_suspension(orders)
        await poll(orders)
        assert await acknowledged(orders, suspending, refused=reason) == passed_on


async def test_acknowledgements_of_other_orders_and_late_ones_are_ignored(orders):
    suspending = order_suspension(orders)
    await poll(orders)
    assert await acknowledged(orders, suspending, order="6-9") == "NotAcknowledged"
    orders.acknowledge(JOB, "r-0", contract.Acknowledgement(id=ORDER.id))
    orders.acknowledge("other", "r-0", contract.Acknowledgement(id=ORDER.id))


async def test_one_order_at_a_time(orders):
    first = order_suspension(orders)
    await asyncio.sleep(0)
    assert await order_suspension(orders, order=contract.SuspendOrder(id="7-2", for_s=1.0)) == "Busy"
    assert await first == "NotPolling"


@pytest.mark.parametrize(
    "end", [lambda orders: orders.forget(JOB), lambda orders: orders.update(JOB, "demo", mapping_state(0, 0))]
)
async def test_the_order_to_a_task_that_ends_is_dropped(orders, end):
    suspending = order_suspension(orders)
    await asyncio.sleep(0)
    end(orders)
    assert await suspending == "TaskEnded"


async def test_a_deleted_job_takes_no_orders(orders):
    orders.forget(JOB)
    assert await order_suspension(orders) == "TaskEnded"
