"""When a status of an object of any kind is written."""

import math

import pytest

from boathouse.cluster import errors
from boathouse.services.frame.status_writer import MESSAGE_DISTANCE_S, Memory, StatusShare, StatusWriter, stripped
from tests.unit.services.frame.api import Api
from tests.unit.services.frame.kinds import KEY, body


class Format:
    """States that are statuses."""

    def to_status(self, state):
        return {"phase": None, "note": None} | state

    def without_free_parts(self, state):
        return {name: value for name, value in state.items() if name != "note"}


class World:
    def __init__(self) -> None:
        self.api, self.now_s, self.refused = Api(), 0.0, []
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
def world():
    return World()


async def test_a_status_that_did_not_change_is_not_written(world):
    await world.write(phase="Running")
    world.now_s = 10.0
    assert await world.write(phase="Running") is None
    assert len(world.written) == 1


async def test_figures_are_written_once_a_second(world):
    await world.write(phase="Running", done=1)
    world.now_s = 0.25
    assert await world.write(phase="Running", done=2) == 0.75
    world.now_s = 1.0
    assert await world.write(phase="Running", done=2) is None
    assert [status["done"] for status in world.written] == [1, 2]


@pytest.mark.parametrize(
    "news",
    [{"phase": "Failed"}, {"berth": 7}, {"conditions": [{"type": "Running", "status": "False"}]}],
    ids=["phase", "urgent field", "condition"],
)
async def test_urgent_changes_are_written_at_once(world, news):
    await world.write(phase="Running")
    assert await world.write(**{"phase": "Running"} | news) is None
    assert len(world.written) == 2


def pending(message, reason="Gang"):
    condition = {"type": "Scheduled", "status": "False", "reason": reason, "message": message}
    return {"phase": "Pending", "conditions": [condition]}


async def test_the_first_new_message_is_written_after_a_second_and_the_next_after_longer(world):
    writes = []
    for number in range(80):
        world.now_s = float(number)
        assert await world.write(**pending(f"{number} cores are free")) is None
        writes.append(len(world.written))
    assert [writes.index(count) for count in (1, 2, 3, 4)] == [0, 1, 1 + MESSAGE_DISTANCE_S, 1 + 2 * MESSAGE_DISTANCE_S]


async def test_a_message_that_is_held_back_says_when_it_is_due(world):
    await world.write(**pending("a"))
    assert world.memory.message_delay_s == math.inf
    world.now_s = 0.25
    await world.write(**pending("b"))
    assert world.memory.message_delay_s == 0.75


async def test_a_reason_is_written_at_once_though_its_message_would_not_be(world):
    await world.write(**pending("a"))
    await world.write(**pending("b", reason="ExceedsQuota"))
    assert len(world.written) == 2


async def test_figures_take_a_held_back_message_with_them(world):
    for number, figures in enumerate(({}, {}, {"done": 1})):
        world.now_s = 2.0 * number
        await world.write(**pending(f"message {number}"), **figures)
    assert world.written[-1] == {**pending("message 2"), "done": 1}


async def test_a_status_beyond_the_share_of_its_namespace_is_delayed(world):
    for number in range(50):
        await world.write(phase=f"P{number}")
    assert await world.write(phase="last") == pytest.approx(1.0)
    assert len(world.written) == 50


def refuse_notes(status):
    if status["note"]:
        raise errors.Invalid(422, "Invalid", "note")


async def test_a_refused_status_is_written_without_its_free_parts(world):
    world.api.refuses = refuse_notes
    await world.write(phase="Running", note="x")
    assert (world.written, world.refused) == ([{"phase": "Running"}], [KEY])
    assert world.memory.state == {"phase": "Running"}


async def test_the_status_of_a_replaced_object_is_not_written(world):
    world.api.objects.on_object(body(9, "u2"))
    with pytest.raises(errors.Conflict):
        await world.write(phase="Running")
