"""Places for API writes: a bounded number at a time, in which namespaces take turns."""

import asyncio
import contextlib

import pytest

from boathouse.fair import Places
from tests.builders.operators.desks import settle


class Writers:
    """Writers that hold a place until they are told to leave."""

    def __init__(self, most: int) -> None:
        self.places, self.inside = Places(most), []
        self.leave = {}
        self.tasks = {}

    async def start(self, name: str, namespace: str = "demo") -> None:
        self.leave[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._hold(name, namespace))
        await settle()

    async def _hold(self, name: str, namespace: str) -> None:
        async with self.places.take(namespace):
            self.inside.append(name)
            try:
                await self.leave[name].wait()
            finally:
                self.inside.remove(name)

    async def end(self, name: str, *, is_cancelled: bool = False) -> None:
        if is_cancelled:
            self.tasks[name].cancel()
        self.leave[name].set()
        with contextlib.suppress(asyncio.CancelledError):
            await self.tasks[name]
        await settle()


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_place_is_free_for_the_next_one_when_its_holder_leaves(is_cancelled):
    writers = Writers(1)
    await writers.start("a")
    await writers.start("b")
    assert writers.inside == ["a"]
    await writers.end("a", is_cancelled=is_cancelled)
    assert writers.inside == ["b"]
    await writers.end("b")


async def test_one_that_is_cancelled_before_its_turn_takes_no_place():
    writers = Writers(1)
    for name in "abc":
        await writers.start(name)
    await writers.end("b", is_cancelled=True)
    assert writers.inside == ["a"]
    await writers.end("a")
    assert writers.inside == ["c"]
    await writers.end("c")
    await writers.start("d")
    assert writers.inside == ["d"]
    await writers.end("d")


async def test_one_that_is_cancelled_as_it_gets_its_place_returns_it():
    writers = Writers(1)
    await writers.start("a")
    await writers.start("b")
    writers.leave["a"].set()
    await asyncio.sleep(0)  # its holder has left, and the next one was not resumed yet
    await writers.end("b", is_cancelled=True)
    await writers.start("c")
    assert writers.inside == ["c"]
    await writers.end("c")


async def test_namespaces_take_turns():
    writers = Writers(1)
    await writers.start("a")
    await writers.start("b")
    await writers.start("c", "team")
    await writers.end("a")
    first = list(writers.inside)
    await writers.end(first[0])
    assert sorted(first + writers.inside) == ["b", "c"]
    await writers.end(writers.inside[0])
