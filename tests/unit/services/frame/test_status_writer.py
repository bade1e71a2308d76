"""When a status of an object of any kind is written."""

import math

import pytest

from boathouse.cluster import errors
from boathouse.services.frame.status_codec import stripped
from boathouse.services.frame.status_writer import MESSAGE_DISTANCE_S, Memory, StatusShare, StatusWriter
from tests.builders.frame import KEY, BoatServer, boat


class Format:
    """States that are statuses."""

    def to_status(self, state):
        return {"phase": None, "note": None} | state

    def without_free_parts(self, state):
        return {name: value for name, value in state.items() if name != "note"}


class Statuses:
    """A writer of statuses, its API server, and a clock."""

    def __init__(self) -> None:
        self.api, self.now_s, self.refused = BoatServer(), 0.0, []
        self.memory = Memory("u1", {"phase": "Pending"}, {})
        self.writer = StatusWriter(
            Format(),
            self.api.writes,
            StatusShare(1.0, lambda: self.now_s),
            on_refused=lambda key, *_: self.refused.append(key),
            clock=lambda: self.now_s,
        )

    async def write(self, **state):
        self.memory.state = state
        return await self.writer.write(KEY, self.memory)

    @property
    def written(self):
        return [stripped(status) for *_, status in self.api.statuses]


@pytest.fixture
def statuses():
    return Statuses()


async def test_a_status_that_did_not_change_is_not_written(statuses):
    await statuses.write(phase="Running")
    statuses.now_s = 10.0
    assert await statuses.write(phase="Running") is None
    assert len(statuses.written) == 1


async def test_figures_are_written_once_a_second(statuses):
    await statuses.write(phase="Running", done=1)
    statuses.now_s = 0.25
    assert await statuses.write(phase="Running", done=2) == 0.75
    statuses.now_s = 1.0
    assert await statuses.write(phase="Running", done=2) is None
    assert [status["done"] for status in statuses.written] == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [{"phase": "Failed"}, {"berth": 7}, {"conditions": [{"type": "Running", "status": "False"}]}],
    ids=["phase", "urgent field", "condition"],
)
async def test_urgent_changes_are_written_at_once(statuses, changes):
    await statuses.write(phase="Running")
    assert await statuses.write(**{"phase": "Running"} | changes) is None
    assert len(statuses.written) == 2


def pending_status(message, reason="Gang"):
    condition = {"type": "Scheduled", "status": "False", "reason": reason, "message": message}
    return {"phase": "Pending", "conditions": [condition]}


async def test_the_first_new_message_is_written_after_a_second_and_the_next_after_longer(statuses):
    writes = []
    for number in range(80):
        statuses.now_s = float(number)
        assert await statuses.write(**pending_status(f"{number} cores are free")) is None
        writes.append(len(statuses.written))
    assert [writes.index(count) for count in (1, 2, 3, 4)] == [0, 1, 1 + MESSAGE_DISTANCE_S, 1 + 2 * MESSAGE_DISTANCE_S]


async def test_a_message_that_is_held_back_says_when_it_is_due(statuses):
    await statuses.write(**pending_status("a"))
    assert statuses.memory.message_delay_s == math.inf
    statuses.now_s = 0.25
    await statuses.write(**pending_status("b"))
    assert statuses.memory.message_delay_s == 0.75


async def test_a_reason_is_written_at_once_though_its_message_would_not_be(statuses):
    await statuses.write(**pending_status("a"))
    await statuses.write(**pending_status("b", reason="ExceedsQuota"))
    assert len(statuses.written) == 2


async def test_figures_take_a_held_back_message_with_them(statuses):
    for number, figures in enumerate(({}, {}, {"done": 1})):
        statuses.now_s = 2.0 * number
        await statuses.write(**pending_status(f"message {number}"), **figures)
    assert statuses.written[-1] == {**pending_status("message 2"), "done": 1}


async def test_a_status_beyond_the_share_of_its_namespace_is_delayed(statuses):
    for number in range(50):
        await statuses.write(phase=f"P{number}")
    assert await statuses.write(phase="last") == pytest.approx(1.0)
    assert len(statuses.written) == 50


async def test_a_refused_status_is_written_without_its_free_parts(statuses):
    def refuse_notes(status):
        if status["note"]:
            raise errors.Invalid(422, "Invalid", "note")

    statuses.api.check = refuse_notes
    await statuses.write(phase="Running", note="x")
    assert (statuses.written, statuses.refused) == ([{"phase": "Running"}], [KEY])
    assert statuses.memory.state == {"phase": "Running"}


async def test_the_status_of_a_replaced_object_is_not_written(statuses):
    statuses.api.objects.on_object(boat(9, "u2"))
    with pytest.raises(errors.Conflict):
        await statuses.write(phase="Running")
