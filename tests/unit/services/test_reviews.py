"""Reviews of tokens: one namespace leaves some to the others, and a large one has enough."""

import asyncio

import pytest

from boathouse.cluster import written
from boathouse.services.progress import auth
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.rejections import Reason


class Reviewer:
    """An API server that responds to reviews once `answers` is set.

    Attributes:
        asked: The tokens of the reviews, in order.
    """

    def __init__(self):
        self.asked = []
        self.answers = asyncio.Event()

    async def token_review(self, token, _audience):
        self.asked.append(token)
        await self.answers.wait()
        pod = {f"authentication.kubernetes.io/pod-{field}": (token,) for field in ("name", "uid")}
        user = written.UserInfo(username="system:serviceaccount:a:default", extra=pod)
        return written.TokenReviewStatus(authenticated=True, user=user)


def pod(namespace: str, name: str) -> Caller:
    return Caller(namespace=namespace, pod_name=name, pod_uid=name)


@pytest.fixture
async def reviewer():
    return Reviewer()


@pytest.fixture
async def ask(reviewer):
    """Ask about so many new tokens of a namespace."""
    subject = auth.Authenticator(reviewer, "boathouse.dev")
    asked = []

    async def ask(namespace, count):
        tokens = [f"{namespace}{len(asked) + i}" for i in range(count)]
        tasks = [asyncio.create_task(subject.caller(token, pod(namespace, token))) for token in tokens]
        asked.extend(tasks)
        for _ in range(10):
            await asyncio.sleep(0)
        return tasks

    yield ask
    for task in (*asked, *subject._pending.values()):
        task.cancel()


async def test_a_namespace_has_not_all_reviews_that_are_under_way(ask, reviewer):
    await ask("a", auth.IN_FLIGHT + 10)
    assert len(reviewer.asked) == auth.IN_FLIGHT_OF_NAMESPACE
    await ask("b", 1)
    assert reviewer.asked[-1].startswith("b")


async def test_tasks_that_start_together_are_all_reviewed(ask, reviewer):
    tasks = await ask("a", 100)
    reviewer.answers.set()
    assert await asyncio.gather(*tasks) == [pod("a", token) for token in reviewer.asked]
    assert len(reviewer.asked) == 100


async def test_a_review_that_has_no_place_in_time_is_refused(ask, reviewer, monkeypatch):
    monkeypatch.setattr(auth, "WAIT_S", 0.01)
    late = (await ask("a", auth.IN_FLIGHT_OF_NAMESPACE + 1))[-1]
    assert await late is Reason.TOO_MANY_REVIEWS
    assert len(reviewer.asked) == auth.IN_FLIGHT_OF_NAMESPACE


async def test_no_more_than_a_namespaces_number_of_reviews_wait(ask, monkeypatch):
    monkeypatch.setattr(auth, "PENDING_OF_NAMESPACE", 20)
    tasks = await ask("a", 25)
    assert [task.result() for task in tasks if task.done()] == [Reason.TOO_MANY_REVIEWS] * 5


def test_ten_thousand_pods_of_a_namespace_are_reviewed_within_half_of_its_share():
    assert 10_000 / auth.CACHE_S < auth.NAMESPACE_RATE / 2
    assert auth.CACHE_SIZE >= 2 * 10_000
