"""What one namespace may make the operator do in a second."""

import dataclasses

from boathouse import buckets
from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.planning import retries
from boathouse_task.contract import TaskType
from tests.unit.services.reconciling import Desk, body


class Limits:
    """Limits the retries of namespaces, and has a clock."""

    def __init__(self, retries_per_second: float = 2.0) -> None:
        self.now_s = 0.0
        burst = retries_per_second * buckets.BURST_S
        self.buckets = buckets.Buckets(rate_per_s=retries_per_second, burst=burst, clock=lambda: self.now_s)

    def admit(self, waiting, granted=frozenset(), namespace="demo"):
        return retries.admit(self.buckets, namespace, waiting, granted)


def attempts(count: int, number: int) -> list[Attempt]:
    return [Attempt(task_type=TaskType.MAP, index=index, number=number) for index in range(count)]


def test_first_attempts_are_not_limited():
    assert len(Limits().admit(attempts(40_000, 1))[0]) == 40_000


def test_later_attempts_start_as_the_namespaces_share_allows():
    limits = Limits()
    waiting = attempts(1000, 2)
    admitted, granted = limits.admit(waiting)
    assert len(admitted) == len(granted) == 100
    limits.now_s = 1.0
    admitted, granted = limits.admit(waiting, granted)
    assert len(admitted) == 102


def test_other_namespaces_have_their_own_share():
    limits = Limits()
    limits.admit(attempts(1000, 2))
    assert len(limits.admit(attempts(10, 2), namespace="other")[0]) == 10


def test_an_attempt_whose_pod_exists_needs_no_share():
    limits = Limits()
    limits.admit(attempts(1000, 2))
    with_pods = [dataclasses.replace(one, pod_uid=f"u{one.index}") for one in attempts(50, 3)]
    admitted, granted = limits.admit(with_pods)
    assert admitted == with_pods
    assert limits.admit(attempts(50, 3), granted)[0] == attempts(50, 3)  # the pods went before they ran


async def test_a_status_that_changes_all_the_time_is_written_as_the_share_allows():
    desk = Desk(tenantLimits={"statusWritesPerSecond": 0.1})
    desk.holds(body("u1"))
    for revision in range(2, 40):
        await desk.look()
        spec = {"suspend": revision % 2 == 0}
        desk.holds({**body("u1", revision=1000 * revision, **spec), "status": desk.stored.get("status")})
        desk.now_s += 0.1
    assert 5 <= len(desk.written) <= 6


async def test_what_could_not_be_written_yet_is_written_when_its_time_has_come():
    desk = Desk(tenantLimits={"statusWritesPerSecond": 0.02})
    desk.holds(body("u1"))
    await desk.look()
    desk.holds({**body("u1", revision=1000, suspend=True), "status": desk.stored["status"]})
    desk.now_s += 1
    again_s = await desk.look()
    assert (len(desk.written), again_s) == (1, 49)
    desk.now_s += again_s
    await desk.look()
    assert desk.written[-1][1]["phase"] == "Suspended"
