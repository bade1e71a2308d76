"""A loop survives failed rounds, but not too many of them."""

from __future__ import annotations

import asyncio

import pytest

from boathouse.cluster import errors, retries

pytestmark = pytest.mark.looptime


class Rounds:
    """Fails as planned, and notes when each round began."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes, self.began_s = list(outcomes), []

    async def once(self) -> None:
        self.began_s.append(asyncio.get_running_loop().time())
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome


async def run_loop(rounds: Rounds, *, for_s: float, name: str = "test", **options) -> None:
    """Run a loop for some time; its end by an exception is the caller's."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(for_s):
            await retries.Loop(name, rounds.once, **options).run()


async def test_a_round_that_fails_is_counted_and_followed_by_the_next():
    rounds = Rounds(None, KeyError("x"), KeyError("y"), None)
    await run_loop(rounds, for_s=45, name="counted", every_s=10)
    assert (len(rounds.began_s), retries.FAILURES["counted"]) == (4, 2)


async def test_a_loop_without_an_interval_backs_off_while_it_fails(monkeypatch):
    monkeypatch.setattr(retries, "MOST_FAILURES", 5)
    rounds = Rounds(*[KeyError("x")] * 5)
    with pytest.raises(KeyError):
        await retries.Loop("backs off", rounds.once).run()
    steps = [after - before for before, after in zip(rounds.began_s, rounds.began_s[1:], strict=False)]
    assert all(0.05 * 2**i <= step <= 0.1 * 2**i for i, step in enumerate(steps))


async def test_ten_failures_within_ten_minutes_end_a_loop():
    rounds = Rounds(*[KeyError("x")] * 20)
    with pytest.raises(KeyError):
        await retries.Loop("ends", rounds.once, every_s=1).run()
    assert len(rounds.began_s) == 10


async def test_failures_far_apart_do_not_end_a_loop():
    rounds = Rounds(*[KeyError("x"), None] * 20)
    await run_loop(rounds, for_s=40 * 60, every_s=60)
    assert len(rounds.began_s) == 39


async def test_an_api_server_that_does_not_answer_ends_no_loop():
    rounds = Rounds(*[errors.ConnectionLost("no answer")] * 30)
    await run_loop(rounds, for_s=100.5, every_s=1)
    assert len(rounds.began_s) > 5


async def test_the_first_round_may_come_sooner():
    rounds = Rounds()
    await run_loop(rounds, for_s=200, first_s=20, every_s=120)
    assert [round(at_s) - round(rounds.began_s[0]) for at_s in rounds.began_s] == [0, 120]


async def test_a_round_may_be_a_plain_function():
    calls = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await retries.Loop("plain", lambda: calls.append(1), every_s=1).run()
    assert len(calls) == 2
