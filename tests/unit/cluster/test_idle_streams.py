"""A stream without data for some time is idle, and its reader hears of it."""

import asyncio

import pytest

from boathouse.cluster import transport

pytestmark = pytest.mark.looptime


async def test_each_piece_of_data_keeps_a_stream_from_being_idle(looptime):
    received = transport._Received(idle_s=10.0)
    for _ in range(3):
        await asyncio.sleep(6)
        received.add(b"line\n")
        await received.wait()
    with pytest.raises(TimeoutError):
        await received.wait()
    assert looptime == 28
    received.timer.cancel()


async def test_a_stream_whose_data_nobody_has_read_is_not_idle(looptime):
    received = transport._Received(idle_s=10.0)
    received.add(b"line\n")
    await asyncio.sleep(25)
    await received.wait()
    assert looptime == 25
    received.timer.cancel()
