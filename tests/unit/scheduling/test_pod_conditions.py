"""Conditions are written when they change, events at most once a minute."""

import asyncio

import pytest

from boathouse.cluster import boundary, errors, wire
from boathouse.scheduling import pod_conditions
from boathouse.scheduling.pods import rows
from boathouse.scheduling.pods.states import PendingReason
from boathouse.telemetry import metrics
from boathouse_policies import model
from tests.builders.manifests import TRANSFORM_POD, pod_view

WANT = PendingReason(reason="Unschedulable", message="0/1 nodes are available.")
WANT_NOW = PendingReason(reason="Unschedulable", message="0/2 nodes are available.")
OTHER = PendingReason(reason="QueueLimit", message="the queue is full")


class Desk:
    """Notices, what they wrote, and a clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.patched: list[dict[str, object]] = []
        self.rows: dict[str, rows.PodRow] = {}
        self.events: list[tuple[str, str]] = []
        self.epoch: int | None = 1
        self.answers = asyncio.Event()
        self.answers.set()
        self.refusal: errors.ClusterError | None = None
        counters, aside = metrics.Metrics().scheduler, boundary.Boundary(self)
        self.notices = pod_conditions.PodConditions(
            self, self, self, counters, lambda: self.now_s, writes_per_s=50.0, aside=aside
        )

    def row(self, pod: wire.PodView) -> rows.PodRow:
        key = pod.metadata.key
        row = self.rows.setdefault(key, rows.PodRow(model.TaskId(key), pod.metadata.namespace))
        row.facts = TRANSFORM_POD(pod)
        return row

    def set_pending(self, pod: wire.PodView, why: PendingReason) -> None:
        self.notices.set_pending(self.row(pod), why)

    def valid(self) -> bool:
        return True

    async def patch_status(self, _resource, _name, status, _namespace, **_options) -> None:
        self.patched += status["conditions"]
        await self.answers.wait()
        if self.refusal is not None:
            raise self.refusal

    def publish(self, about, *, type_, reason, action, note) -> None:
        del about, type_, action
        self.events.append((reason, note))

    async def written(self) -> list[str]:
        """Return the messages written so far, once all that is due is written."""
        task = asyncio.create_task(self.notices.run())
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [str(one["message"]) for one in self.patched]


async def test_a_reason_is_written_once():
    desk = Desk()
    for _ in range(3):
        desk.set_pending(pod_view(), WANT)
    assert await desk.written() == [WANT.message]
    assert desk.events == [("FailedScheduling", WANT.message)]


async def test_another_reason_is_written_at_once():
    desk = Desk()
    desk.set_pending(pod_view(), WANT)
    await desk.written()
    desk.set_pending(pod_view(), OTHER)
    assert await desk.written() == [WANT.message, OTHER.message]
    assert len(desk.events) == 2


async def test_a_message_that_keeps_changing_is_written_every_ten_seconds_at_most():
    desk = Desk()
    for second in range(25):
        desk.now_s = second
        desk.set_pending(pod_view(), PendingReason(reason="Unschedulable", message=f"at {second}"))
        await desk.written()
    assert await desk.written() == ["at 0", "at 10", "at 20"]
    assert len(desk.events) == 1


async def test_the_last_of_many_messages_is_written_though_nobody_says_it_again():
    desk = Desk()
    for second in range(3):
        desk.now_s = second
        desk.set_pending(pod_view(), PendingReason(reason="Unschedulable", message=f"at {second}"))
        await desk.written()
    assert desk.notices.next_s() == 10
    desk.now_s = 10
    desk.notices.flush()
    assert await desk.written() == ["at 0", "at 2"]


async def test_a_condition_that_was_held_back_is_not_written_to_a_placed_pod():
    desk = Desk()
    for message in ("one", "another"):
        desk.set_pending(pod_view(), PendingReason(reason="Unschedulable", message=message))
    desk.notices.forget(desk.row(pod_view()))
    desk.now_s = 10
    desk.notices.flush()
    assert await desk.written() == []


async def test_two_writes_about_a_pod_go_out_one_after_the_other():
    desk = Desk()
    desk.answers = asyncio.Event()
    desk.set_pending(pod_view(), WANT)
    running = asyncio.create_task(desk.notices.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    desk.set_pending(pod_view(), OTHER)
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    assert [one["message"] for one in desk.patched] == [WANT.message]


async def test_what_could_not_be_written_is_written_after_a_while_though_nobody_says_it_again():
    desk = Desk()
    desk.refusal = errors.ServerError(503, "", "")
    desk.set_pending(pod_view(), WANT)
    await desk.written()
    desk.refusal, desk.now_s = None, desk.notices.next_s()
    desk.notices.flush()
    assert await desk.written() == [WANT.message] * 2
    assert desk.now_s == 10


async def test_a_server_that_takes_no_condition_is_not_asked_at_every_look():
    desk = Desk()
    desk.refusal = errors.Forbidden(403, "Forbidden", "")
    for second in range(20):
        desk.now_s = second
        desk.set_pending(pod_view(), WANT)
        await desk.written()
    assert len(desk.patched) == 2
    assert len(desk.events) == 1


async def test_what_was_said_since_is_not_overwritten_by_what_could_not_be_written():
    desk = Desk()
    desk.answers, desk.refusal = asyncio.Event(), errors.ServerError(503, "", "")
    desk.set_pending(pod_view(), WANT)
    running = asyncio.create_task(desk.notices.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    desk.set_pending(pod_view(), OTHER)
    desk.answers.set()
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    desk.now_s, desk.refusal = 10, None
    desk.notices.flush()
    assert await desk.written() == [WANT.message, OTHER.message, OTHER.message]


async def test_an_event_may_be_repeated_after_a_minute():
    desk = Desk()
    for desk.now_s in (0.0, 59.0, 60.0):
        desk.set_pending(pod_view(), WANT)
    assert len(desk.events) == 2


async def test_what_an_earlier_leader_wrote_is_not_written_again():
    desk = Desk()
    stated = wire.Condition(type="PodScheduled", status="False", reason=WANT.reason, message=WANT.message)
    desk.set_pending(pod_view(conditions=(stated,)), WANT)
    assert await desk.written() == []


async def test_a_condition_tells_the_generation_it_speaks_of_and_keeps_the_time_of_its_transition():
    desk = Desk()
    stated = wire.Condition(type="PodScheduled", status="False", reason="QueueLimit", message="x")
    desk.set_pending(pod_view(conditions=(stated,), meta={"generation": 3}), WANT)
    await desk.written()
    assert desk.patched == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": WANT.message,
            "observedGeneration": 3,
        }
    ]


async def test_a_pod_that_is_placed_before_its_condition_was_written_gets_none():
    desk = Desk()
    desk.set_pending(pod_view(), WANT)
    desk.notices.scheduled(desk.row(pod_view()), "uid-p", "n1")
    assert await desk.written() == []
    assert desk.events[-1] == ("Scheduled", "Successfully assigned demo/p to n1")


async def test_conditions_of_one_namespace_do_not_hold_up_those_of_others():
    desk = Desk()
    for number in range(5000):
        desk.set_pending(pod_view(f"p{number}"), WANT)
    desk.set_pending(pod_view("quiet", meta={"namespace": "other"}), OTHER)
    assert (await desk.written())[:3].count(OTHER.message) == 1


async def test_conditions_of_a_namespace_that_used_up_its_share_are_written_later():
    desk = Desk()
    for number in range(2600):
        desk.set_pending(pod_view(f"p{number}"), WANT)
    assert desk.notices.shares.refused == 100
    desk.now_s = desk.notices.next_s()
    desk.notices.flush()
    assert desk.notices.shares.refused == 100
    assert not desk.notices._delayed


def test_what_was_held_back_of_many_pods_is_looked_through_once_a_second():
    desk = Desk()
    for i in range(200):
        desk.now_s = i / 20
        desk.set_pending(pod_view(f"p{i}", meta={"uid": f"u{i}"}), WANT)
        desk.set_pending(pod_view(f"p{i}", meta={"uid": f"u{i}"}), WANT_NOW)
    looks = 0
    while desk.notices._delayed:
        desk.now_s = max(desk.now_s, desk.notices.next_s())
        desk.notices.flush()
        looks += 1
    assert looks <= 12
    assert desk.now_s < 22.0
