"""Backoff by namespace and reason."""

import pytest

from boathouse.scheduling import outcomes, refusals
from boathouse.scheduling.pods import rows
from boathouse.scheduling.refusals import Scope, Verb
from boathouse_policies import model
from tests.builders.operators.desks import operation

QUOTA = outcomes.NotDone(reason="QuotaExceeded", message="exceeded quota: small", at_least_s=30)
INVALID = outcomes.NotDone(reason="PodRefused", message="no PriorityClass with name nope", at_least_s=10)
OVERLOAD = outcomes.NotDone(reason="TooManyRequests", message="slow down", at_least_s=2)


def create(namespace: str, job: str, task: str = "t") -> rows.Operation:
    return operation(f"{namespace}/{job}-{task}", job=job)


class Desk:
    """Refusals, and a clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.refusals = refusals.Refusals(lambda: self.now_s)

    def refused(self, why: outcomes.NotDone, namespace: str = "a", job: str = "j", task: str = "t") -> bool:
        return self.refusals.refused(create(namespace, job, task), why)

    def taken(self, namespace: str = "a", job: str = "j") -> None:
        self.refusals.succeeded(create(namespace, job))

    def held(self, namespace: str = "a", job: str = "j") -> refusals.Backoff | None:
        return self.refusals.of(namespace, model.ClassId(f"{job}/map"), Verb.CREATE)

    def granted(self) -> list[Scope]:
        return [hold.scope for hold in self.refusals.due() if self.refusals.grant(hold)]


def test_a_full_quota_holds_all_jobs_of_its_namespace_and_no_others():
    desk = Desk()
    assert desk.refused(QUOTA)
    assert desk.held(job="other").reason == "QuotaExceeded"
    assert desk.held("b") is None


def test_a_refused_create_does_not_hold_binds():
    desk = Desk()
    desk.refused(QUOTA)
    assert desk.refusals.of("a", model.ClassId("j/map"), Verb.BIND) is None


def test_a_name_that_is_taken_concerns_its_task_alone_unless_several_are():
    desk = Desk()
    taken = outcomes.NotDone(reason="NameTaken", message="", at_least_s=30)
    assert [desk.refused(taken, task=task) for task in ("t1", "t1", "t2")] == [False] * 3
    desk.taken()
    assert [desk.refused(taken, task=task) for task in ("t1", "t2", "t3")] == [False, False, True]


def test_a_refusal_that_may_be_the_jobs_holds_the_job_alone():
    desk = Desk()
    desk.refused(INVALID)
    assert desk.held().reason == "PodRefused"
    assert desk.held(job="other") is None


def test_after_several_jobs_in_a_row_the_namespace_is_held():
    desk = Desk()
    for job in ("j1", "j2", "j3"):
        desk.refused(INVALID, job=job)
    assert desk.held(job="other") is not None


def test_a_job_whose_pods_are_taken_in_between_keeps_the_namespace_open():
    desk = Desk()
    for job in ("j1", "j2", "j3", "j4"):
        desk.refused(INVALID, job=job)
        desk.taken(job="good")
    assert desk.held(job="other") is None


def test_what_concerns_one_task_alone_holds_nothing():
    desk = Desk()
    assert not desk.refused(outcomes.NotDone(reason="Conflict", message=""))
    assert desk.held() is None


def test_a_probe_is_due_when_the_time_is_up():
    desk = Desk()
    desk.refused(QUOTA)
    desk.now_s = 29.0
    assert desk.granted() == []
    assert desk.refusals.next_s() == 30.0
    desk.now_s = 30.0
    assert desk.granted() == [Scope(Verb.CREATE, "a")]
    assert desk.refusals.next_s() == 30.0 + refusals.UNANSWERED_S


def test_a_refused_probe_holds_again():
    desk = Desk()
    desk.refused(QUOTA)
    desk.now_s = 30.0
    desk.granted()
    desk.refused(QUOTA)
    assert not desk.held().is_probing
    assert desk.refusals.next_s() == 60.0


def test_many_probes_in_a_row_lift_the_hold():
    desk = Desk()
    desk.refused(QUOTA)
    desk.now_s = 30.0
    desk.granted()
    for _ in range(refusals.TAKEN_IN_A_ROW):
        assert desk.held() is not None
        desk.taken()
    assert desk.held() is None


def test_a_write_that_was_on_its_way_before_the_refusal_lifts_nothing():
    desk = Desk()
    desk.refused(QUOTA)
    for _ in range(100):
        desk.taken()
    assert desk.held() is not None


def test_a_pod_that_ends_makes_the_next_probe_due_soon():
    desk = Desk()
    desk.refused(QUOTA)
    desk.refusals.relieved("a")
    desk.refusals.relieved("b")
    assert desk.refusals.next_s() == 1.0


def test_probes_of_a_namespace_keep_a_distance():
    desk = Desk()
    grants = 0
    for _ in range(1000):
        desk.now_s += 0.01
        desk.refused(QUOTA)
        desk.refusals.relieved("a")
        desk.now_s += 1.0
        grants += len(desk.granted())
        desk.now_s -= 1.0
    assert grants <= 11


def test_probes_of_all_namespaces_together_keep_to_their_budget():
    desk = Desk()
    names = [f"n{i}" for i in range(500)]
    for name in names:
        desk.refused(QUOTA, name)
    grants: list[str] = []
    for _ in range(1000):
        desk.now_s += 0.1
        for scope in desk.granted():
            grants.append(scope.namespace)
            desk.refused(QUOTA, scope.namespace)
    assert len(grants) <= 70 * refusals.PROBES_PER_S + 2
    assert len(set(grants)) == len(grants)  # none is probed twice before all others


def test_what_an_overload_held_is_released_without_a_probe():
    desk = Desk()
    for i in range(100):
        desk.refused(OVERLOAD, f"n{i}")
    desk.now_s = 2.0
    assert desk.granted() == []
    assert len(desk.refusals) == 0


@pytest.mark.parametrize("why", [QUOTA, INVALID])
def test_nothing_is_kept_of_a_job_that_is_gone(why):
    desk = Desk()
    desk.refused(why)
    desk.refusals.forget("a", model.JobId("j"), [model.ClassId("j/map")])
    assert (desk.held() is None) is (why is INVALID)


def test_a_hold_and_its_end_are_news():
    desk = Desk()
    desk.refused(QUOTA)
    assert desk.refusals.changed() == {Scope(Verb.CREATE, "a")}
    desk.refused(QUOTA)
    assert desk.refusals.changed() == set()
    desk.refusals.lift(Scope(Verb.CREATE, "a"))
    assert desk.refusals.changed() == {Scope(Verb.CREATE, "a")}
