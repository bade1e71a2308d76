from __future__ import annotations

import random

import pytest

from boathouse.cluster import errors, retries


class Flaky:
    """Fails with each of the errors in turn, then succeeds; remembers how long it was made to wait."""

    def __init__(self, *failures: errors.ClusterError) -> None:
        self.failures = list(failures)
        self.waited_s: list[float] = []

    async def call(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "done"

    async def sleep(self, delay_s: float) -> None:
        self.waited_s.append(delay_s)

    async def run(self, **options) -> str:
        options.setdefault("idempotent", True)
        return await retries.retrying(self.call, sleep=self.sleep, **options)


async def test_a_lost_connection_is_tried_again():
    flaky = Flaky(errors.ConnectionLost("reset"), errors.ServerError(500, "", ""))
    assert await flaky.run() == "done"
    assert len(flaky.waited_s) == 2


async def test_retry_after_is_the_least_it_waits():
    flaky = Flaky(errors.TooManyRequests(429, "TooManyRequests", "", 7.0))
    await flaky.run(idempotent=False)
    assert 7.0 <= flaky.waited_s[0] <= 7.7


async def test_what_may_have_been_done_is_not_repeated_unless_it_may_be_done_twice():
    with pytest.raises(errors.ConnectionLost):
        await Flaky(errors.ConnectionLost("reset")).run(idempotent=False)


async def test_a_refused_connection_is_always_worth_another_try():
    assert await Flaky(errors.ConnectionLost("refused", maybe_done=False)).run(idempotent=False) == "done"


async def test_a_refused_token_is_tried_again_because_it_is_read_again():
    assert await Flaky(errors.Unauthorized(401, "Unauthorized", "")).run(idempotent=False) == "done"


async def test_a_conflict_is_tried_again_only_when_asked_for():
    assert await Flaky(errors.Conflict(409, "Conflict", "")).run(conflicts=True) == "done"
    with pytest.raises(errors.Conflict):
        await Flaky(errors.Conflict(409, "Conflict", "")).run()


async def test_a_taken_name_is_no_conflict_to_try_again():
    with pytest.raises(errors.AlreadyExists):
        await Flaky(errors.AlreadyExists(409, "AlreadyExists", "")).run(conflicts=True)


async def test_it_gives_up_with_the_last_error():
    flaky = Flaky(*(errors.ServerError(500 + n, "", "") for n in range(9)))
    with pytest.raises(errors.ServerError, match="502"):
        await flaky.run(backoff=retries.Backoff(attempts=3))


def test_delays_grow_to_the_cap():
    backoff = retries.Backoff(base_s=1, factor=2, cap_s=5)
    delays = [backoff.delay_s(n, random.Random(n)) for n in (1, 2, 3, 4, 60)]
    assert all(top / 2 <= delay <= top for delay, top in zip(delays, (1, 2, 4, 5, 5), strict=True))


@pytest.mark.looptime
async def test_what_a_process_cannot_go_on_without_is_tried_until_it_succeeds(looptime):
    failures = [errors.Forbidden(403, "Forbidden", "")] * 9 + [errors.ServerError(503, "", "")] * 9

    async def call() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert await retries.until_done(call, what="begin") == "done"
    assert 9 * 5 <= float(looptime) <= 18 * retries.Backoff().cap_s
