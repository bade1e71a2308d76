"""Reviews of tokens: each namespace has a share, which is enough for a large one."""

import asyncio

import pytest

from boathouse.cluster import written
from boathouse.services.progress import auth, limits
from boathouse.services.progress.auth import Caller
from boathouse.services.progress.limits import Reason


class Reviewer:
    """An API server that responds to reviews once `responds` is set.

    Attributes:
        reviewed: The tokens of the reviews, in order.
    """

    def __init__(self):
        self.reviewed = []
        self.responds = asyncio.Event()

    async def token_review(self, token, _audience):
        self.reviewed.append(token)
        await self.responds.wait()
        pod = {f"authentication.kubernetes.io/pod-{field}": (token,) for field in ("name", "uid")}
        user = written.UserInfo(username="system:serviceaccount:a:default", extra=pod)
        return written.TokenReviewStatus(authenticated=True, user=user)


def caller(namespace: str, name: str) -> Caller:
    return Caller(namespace=namespace, pod_name=name, pod_uid=name)


@pytest.fixture
async def reviewer():
    return Reviewer()


@pytest.fixture
async def request_reviews(reviewer):
    """Return a function that requests reviews of a number of new tokens of a namespace."""
    subject = auth.Authenticator(reviewer, "boathouse.dev")
    requested = []

    async def request_reviews(namespace, count):
        tokens = [f"{namespace}{len(requested) + i}" for i in range(count)]
        tasks = [asyncio.create_task(subject.caller(token, caller(namespace, token))) for token in tokens]
        requested.extend(tasks)
        for _ in range(10):
            await asyncio.sleep(0)
        return tasks

    yield request_reviews
    for task in (*requested, *subject._pending.values()):
        task.cancel()


async def test_a_namespace_has_only_a_share_of_the_reviews_in_flight(request_reviews, reviewer):
    await request_reviews("a", auth.IN_FLIGHT + 10)
    assert len(reviewer.reviewed) == auth.IN_FLIGHT_OF_NAMESPACE
    await request_reviews("b", 1)
    assert reviewer.reviewed[-1].startswith("b")


async def test_tasks_that_start_together_are_all_reviewed(request_reviews, reviewer):
    tasks = await request_reviews("a", 100)
    reviewer.responds.set()
    assert await asyncio.gather(*tasks) == [caller("a", token) for token in reviewer.reviewed]
    assert len(reviewer.reviewed) == 100


async def test_a_review_that_does_not_begin_in_time_is_refused(request_reviews, reviewer, monkeypatch):
    monkeypatch.setattr(auth, "WAIT_S", 0.01)
    late = (await request_reviews("a", auth.IN_FLIGHT_OF_NAMESPACE + 1))[-1]
    assert await late is Reason.TOO_MANY_REVIEWS
    assert len(reviewer.reviewed) == auth.IN_FLIGHT_OF_NAMESPACE


async def test_a_namespace_has_a_limit_of_pending_reviews(request_reviews, monkeypatch):
    monkeypatch.setattr(auth, "PENDING_OF_NAMESPACE", 20)
    tasks = await request_reviews("a", 25)
    assert [task.result() for task in tasks if task.done()] == [Reason.TOO_MANY_REVIEWS] * 5


def test_expired_verdicts_are_dropped():
    now_s = 0.0
    memory = limits.Cache(60.0, lambda: now_s)
    for number in range(3):
        memory.put(bytes([number]), Reason.INVALID_TOKEN)
    now_s = 61.0
    memory.put(b"new", Reason.INVALID_TOKEN)
    assert [*memory._values] == [b"new"]


def test_ten_thousand_pods_of_a_namespace_are_reviewed_within_half_of_its_share():
    assert 10_000 / auth.CACHE_S < auth.NAMESPACE_RATE / 2
    assert limits.CACHE_SIZE >= 2 * 10_000
