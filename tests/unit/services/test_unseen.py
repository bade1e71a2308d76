"""A pod may come and go between two looks at its job, or be made and deleted while no watch was open."""

from boathouse.services.mrjob.kind import RESUBMIT_S
from tests.unit.services.reconciling import Desk, body

SETUP = "wordcount-u1-s0-setup"


async def looked_at_for_minutes(desk):
    for _ in range(5):
        await desk.look()
        desk.now_s += RESUBMIT_S


async def test_a_task_whose_pod_nobody_saw_come_and_go_gets_another_attempt():
    desk = Desk()
    desk.holds(body("u1"))
    desk.over = {f"demo/{SETUP}-a1"}
    await looked_at_for_minutes(desk)
    assert desk.submitted[-1] == (f"demo/{SETUP}-a2",)
    assert desk.written[-1][1]["failures"] == {"user": 0, "infrastructure": 1}


async def test_a_task_that_waits_for_long_keeps_its_attempt():
    desk = Desk()
    desk.holds(body("u1"))
    await looked_at_for_minutes(desk)
    assert set(desk.submitted) == {(f"demo/{SETUP}-a1",)}
