"""Pods that are created and deleted between two reconciles of their job, or while no watch is open."""

from boathouse.services.mrjob.kind import RESUBMIT_S
from tests.unit.services.reconciling import Desk, body

SETUP = "wordcount-u1-s0-setup"


async def looked_at_for_minutes(desk):
    for _ in range(5):
        await desk.look()
        desk.now_s += RESUBMIT_S


async def test_a_task_whose_pod_was_never_observed_gets_another_attempt():
    desk = Desk()
    desk.holds(body("u1"))
    desk.over = {f"demo/{SETUP}-a1"}
    await looked_at_for_minutes(desk)
    assert desk.submitted[-1] == (f"demo/{SETUP}-a2",)
    assert desk.written[-1][1]["failures"] == {"user": 0, "infrastructure": 1}


async def test_a_long_pending_task_keeps_its_attempt():
    desk = Desk()
    desk.holds(body("u1"))
    await looked_at_for_minutes(desk)
    assert set(desk.submitted) == {(f"demo/{SETUP}-a1",)}
