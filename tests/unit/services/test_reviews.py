"""Reviews of tokens: one namespace leaves some to the others, and a large one has enough."""

import asyncio

from boathouse.services.progress import auth
from boathouse.services.progress.claims import Caller
from boathouse.services.progress.rejections import Reason


class Slow:
    """An API server that does not answer."""

    async def token_review(self, _token, _audience):
        await asyncio.Event().wait()


def pod(namespace: str, number: int) -> Caller:
    return Caller(namespace=namespace, pod_name=f"p{number}", pod_uid=f"u{number}")


async def test_a_namespace_has_not_all_reviews_that_are_under_way():
    subject = auth.Authenticator(Slow(), "boathouse.dev")
    asked = [asyncio.create_task(subject.caller(f"a{i}", pod("a", i))) for i in range(auth.IN_FLIGHT)]
    await asyncio.sleep(0)
    other = asyncio.create_task(subject.caller("b", pod("b", 0)))
    await asyncio.sleep(0)
    refused = [task.result() for task in asked if task.done()]
    assert refused == [Reason.TOO_MANY_REVIEWS] * (auth.IN_FLIGHT - auth.IN_FLIGHT_OF_NAMESPACE)
    assert not other.done()
    for task in (*asked, other, *subject._in_flight.values()):
        task.cancel()


def test_ten_thousand_pods_of_a_namespace_are_reviewed_within_half_of_its_share():
    assert 10_000 / auth.CACHE_S < auth.NAMESPACE_RATE / 2
    assert auth.CACHE_SIZE >= 2 * 10_000
