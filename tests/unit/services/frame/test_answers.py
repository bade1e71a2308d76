"""Cached answers of the API server."""

import asyncio

import pytest

from boathouse.services.frame.related_objects import ENTRY_BYTES, Answer, Answers


class Reads:
    """Reads whatever is asked for, and records it."""

    def __init__(self):
        self.now_s = 0.0
        self.made = []
        self.answers = Answers(lambda: self.now_s, max_bytes=8 * ENTRY_BYTES)

    async def get(self, namespace, key, size_bytes=0, error=None):
        async def read():
            self.made.append((namespace, key))
            await asyncio.sleep(0)
            if error is not None:
                raise error
            return Answer(value=key, ttl_s=10.0, size_bytes=size_bytes)

        return await self.answers.get(namespace, key, read)


@pytest.fixture
def reads():
    return Reads()


async def test_an_answer_is_shared_by_all_that_ask_while_it_is_read(reads):
    assert await asyncio.gather(*(reads.get("a", "x") for _ in range(5))) == ["x"] * 5
    assert reads.made == [("a", "x")]


async def test_an_answer_is_read_again_when_it_is_old(reads):
    for now_s in (0.0, 10.0, 10.5):
        reads.now_s = now_s
        await reads.get("a", "x")
    assert len(reads.made) == 2


async def test_an_error_is_not_an_answer(reads):
    with pytest.raises(OSError, match="down"):
        await reads.get("a", "x", error=OSError("down"))
    assert await reads.get("a", "x") == "x"


async def test_a_namespace_evicts_its_own_answers_only(reads):
    await reads.get("b", "x")
    for number in range(100):
        await reads.get("a", number)
    await reads.get("b", "x")
    assert reads.made.count(("b", "x")) == 1
    assert reads.answers.used_bytes == 3 * ENTRY_BYTES


async def test_the_namespace_with_most_answers_gives_way_to_others(reads):
    for namespace in "abcdefgh":
        for key in ("x", "y"):
            await reads.get(namespace, key)
    assert reads.answers.used_bytes <= 8 * ENTRY_BYTES


async def test_an_answer_that_is_too_large_is_not_kept(reads):
    await reads.get("a", "x", size_bytes=2 * ENTRY_BYTES)
    assert reads.answers.used_bytes == 0
