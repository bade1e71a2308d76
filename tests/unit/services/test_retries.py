"""The retries and writes of statuses that a namespace may cause in a second."""

from boathouse import fair
from boathouse.services.mrjob import submission
from boathouse.services.mrjob.settle import Attempt
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import JobReconciler


class Limits:
    """Limits the retries of namespaces, and has a clock."""

    def __init__(self, retries_per_second: float = 2.0) -> None:
        self.now_s = 0.0
        burst = retries_per_second * fair.BURST_S
        self.buckets = fair.Buckets(rate_per_s=retries_per_second, burst=burst, clock=lambda: self.now_s)

    def admit(self, waiting, granted=frozenset(), namespace="demo"):
        return submission.admit(self.buckets, namespace, waiting, granted)


def attempts(count: int, number: int, pods: bool = False) -> list[Attempt]:
    return [mrjobs.attempt(index=index, number=number, pod_uid=f"u{index}" if pods else None) for index in range(count)]


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
    with_pods = attempts(50, 3, pods=True)
    admitted, granted = limits.admit(with_pods)
    assert admitted == with_pods
    assert limits.admit(attempts(50, 3), granted)[0] == attempts(50, 3)  # the pods were deleted before they ran


async def test_a_status_that_changes_all_the_time_is_written_as_the_share_allows():
    jobs = JobReconciler(mrjobs.mrjob(), tenantLimits={"statusWritesPerSecond": 0.1})
    for revision in range(2, 40):
        await jobs.reconcile()
        status = jobs.stored.get("status")
        jobs.store(mrjobs.mrjob(revision=1000 * revision, suspend=revision % 2 == 0, status=status))
        jobs.now_s += 0.1
    assert 5 <= len(jobs.statuses) <= 6


async def test_a_delayed_status_is_written_when_it_is_due():
    jobs = JobReconciler(mrjobs.mrjob(), tenantLimits={"statusWritesPerSecond": 0.02})
    await jobs.reconcile()
    jobs.store(mrjobs.mrjob(revision=1000, suspend=True, status=jobs.stored["status"]))
    jobs.now_s += 1
    requeue_s = await jobs.reconcile()
    assert (len(jobs.statuses), requeue_s) == (1, 49)
    jobs.now_s += requeue_s
    await jobs.reconcile()
    assert jobs.last_status["phase"] == "Suspended"
