"""Pods made ahead of their nodes, where the API server takes none."""

from boathouse.cluster import errors
from boathouse.scheduling import executor, outcomes
from tests.builders.manifests import container, pod_view
from tests.builders.operators.desks import Desk

QUOTA = errors.Forbidden(403, "Forbidden", "exceeded quota: small")


def full(desk: Desk) -> None:
    desk.node("n1")
    desk.show(pod_view("other", containers=(container(cpu="4"),), node="n1"))


async def refused(desk: Desk) -> int:
    """Refuse all pods that are asked for; return how many."""
    asked = list(desk.requests)
    for verb, what in asked:
        await desk.answer(verb, what, QUOTA)
    return len(asked)


async def test_of_a_job_whose_pods_are_refused_no_others_are_tried_at_once():
    async with Desk().writing() as desk:
        full(desk)
        desk.submit(*(f"demo/t{n}" for n in range(20)))
        await desk.decide()
        desk.now_s += 2
        await desk.decide()
        assert await refused(desk) == executor.SLOW_START
        assert await desk.decide() == []


async def test_after_a_while_they_are_tried_again():
    async with Desk().writing() as desk:
        full(desk)
        desk.submit("demo/t0")
        await desk.decide()
        desk.now_s += 2
        await desk.decide()
        await refused(desk)
        desk.now_s += outcomes.QUOTA_BACKOFF_S + 1
        await desk.decide()
        desk.now_s += 2
        assert await desk.decide() == [("create", "t0 -")]
