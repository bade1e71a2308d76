"""What a refusal, and what a pod found in place of an answer, mean."""

import pytest

from boathouse.cluster import errors, wire
from boathouse.scheduling import outcomes, writer
from tests.builders.manifests import pod_view
from tests.builders.operators.desks import operation

CREATE, BIND, AHEAD = operation(), operation(uid="uid-p"), operation(node=None)
AGAIN = outcomes.NotDone(reason="Conflict", message="")
OWNER = {"owner": wire.OwnerReference(uid="job", controller=True)}


def judged(decided, found, owner=None):
    return type(writer.judge(decided, owner, found, AGAIN))


def test_a_row_names_the_pod():
    assert (CREATE.row.namespace, CREATE.row.name) == ("demo", "p")


@pytest.mark.parametrize(
    ("decided", "found", "outcome"),
    [
        (CREATE, None, outcomes.NotDone),
        (CREATE, pod_view(meta=OWNER, node="n1"), outcomes.Done),
        (CREATE, pod_view(meta=OWNER, node="n2"), outcomes.Elsewhere),
        (CREATE, pod_view(meta=OWNER), outcomes.Elsewhere),
        (CREATE, pod_view(meta=OWNER, node="n1", phase="Succeeded"), outcomes.Elsewhere),
        (CREATE, pod_view(node="n1"), outcomes.NameTaken),
        (AHEAD, pod_view(meta=OWNER), outcomes.Done),
        (AHEAD, pod_view(meta=OWNER, node="n2"), outcomes.Elsewhere),
    ],
)
def test_what_a_pod_means_for_a_create(decided, found, outcome):
    assert judged(decided, found, "job") is outcome


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (None, outcomes.Vanished),
        (pod_view(meta={"uid": "another"}), outcomes.Vanished),
        (pod_view(node="n1"), outcomes.Done),
        (pod_view(node="n2"), outcomes.Elsewhere),
        (pod_view(), outcomes.NotDone),
        (pod_view(scheduling_gates=(wire.Present(),)), outcomes.Elsewhere),
        (pod_view(phase="Failed"), outcomes.Elsewhere),
    ],
)
def test_what_a_pod_means_for_a_bind(found, outcome):
    assert judged(BIND, found) is outcome


@pytest.mark.parametrize(
    ("error", "reason", "at_least_s"),
    [
        (errors.from_status(429, "TooManyRequests", "slow down", 7.0), "TooManyRequests", 7.0),
        (errors.from_status(403, "Forbidden", "exceeded quota: q"), "QuotaExceeded", 30.0),
        (errors.from_status(403, "Forbidden", "violates PodSecurity"), "PodRefused", 10.0),
        (errors.from_status(422, "Invalid", "spec.containers: Required value"), "PodRefused", 10.0),
    ],
)
def test_a_refusal_says_how_long_to_wait_and_why(error, reason, at_least_s):
    refused = outcomes.refusal(error)
    assert (refused.reason, refused.message, refused.at_least_s) == (reason, error.message, at_least_s)


@pytest.mark.parametrize(("status", "may_be"), [(403, True), (422, True), (429, False), (404, False), (500, False)])
def test_only_what_admission_answers_can_be_the_fence(status, may_be):
    assert outcomes.may_be_the_fence(errors.from_status(status, "", "no")) is may_be


def test_a_refusal_that_only_names_the_fence_concerns_its_pod_alone():
    message = 'pods "boathouse-fence-m-00000-1" is forbidden: no PriorityClass with name nope was found'
    assert outcomes.refusal(errors.from_status(403, "Forbidden", message)).reason == "PodRefused"
