"""Whose a pod is, and what it is charged to: by its owner, not by what anybody may write."""

import dataclasses

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling.pods import facts, ownership, translate
from boathouse_policies import framework, model
from tests.builders import manifests

OWNER = wire.OwnerReference(api_version=names.API_VERSION, kind="MRJob", name="wc", uid="u", controller=True)
LABELS = {names.LABEL_JOB_UID: "u", names.LABEL_QUEUE: "nightly"}


def pod(
    owner: wire.OwnerReference | None = None,
    *,
    labels: dict[str, str] = LABELS,
    scheduler: str = "default-scheduler",
    **spec,
) -> facts.PodFacts:
    return manifests.TRANSFORM_POD(
        manifests.pod_view(meta={"labels": labels, "owner": owner}, node="n1", scheduler=scheduler, **spec)
    )


def test_a_pod_that_a_job_owns_is_charged_to_it_and_its_queue():
    account = ownership.of(pod(OWNER, scheduler="boathouse"))
    assert (account.job, account.queue) == ("u", "nightly")


@pytest.mark.parametrize(
    "owner",
    [
        {"api_version": "batch/v1"},
        {"api_version": "boathouse.dev.example.com/v1"},
        {"uid": "another"},
        {"controller": False},
    ],
)
def test_a_pod_that_claims_a_job_is_charged_to_nobody(owner):
    forged = pod(msgspec.structs.replace(OWNER, **owner))
    account = ownership.of(forged)
    assert (account.job, account.queue) == (None, None)
    assert forged.task_of is None


def test_a_pod_of_another_kind_of_the_group_is_charged_to_its_object():
    of_another_kind = pod(msgspec.structs.replace(OWNER, kind="DriverApp"))
    assert (ownership.of(of_another_kind).job, of_another_kind.task_of) == ("u", "u")


@pytest.mark.parametrize(
    ("owner", "restart_policy", "expected"),
    [(OWNER, "Never", False), (OWNER, "Always", True), (None, "Never", True)],
    ids=["a task", "a node of a Hadoop cluster", "a pod of others"],
)
def test_tasks_that_end_by_themselves_are_expected_to_end(owner, restart_policy, expected):
    assert ownership.of(pod(owner, restart_policy=restart_policy)).is_long_running is expected


@pytest.mark.parametrize(("owner", "charged"), [(OWNER, "nightly"), (None, None)], ids=["a task", "a pod of others"])
def test_the_priority_class_of_a_task_was_judged_with_its_job(owner, charged):
    nightly = model.Queue(name=model.QueueName("nightly"), priority_classes=("batch",))
    queue_of = ownership.charged_queue_of(ownership.default_queue, framework.SchedulingQueue(model.Axis(), [nightly]))
    given_by_admission = pod(owner, scheduler="boathouse", priority_class_name="default-of-the-cluster")
    assert ownership.of(given_by_admission, queue_of=queue_of).queue == charged


def test_the_label_alone_makes_no_task():
    assert ownership.of(pod()).job is None


def test_the_queue_label_of_a_pod_of_another_scheduler_charges_nothing():
    assert ownership.of(pod(labels={names.LABEL_QUEUE: "nightly"})).queue is None


def test_foreign_pods_never_belong_to_a_job_by_a_forged_owner_uid():
    forged = pod(msgspec.structs.replace(OWNER, api_version="apps/v1", kind="ReplicaSet"), scheduler="boathouse")
    assert ownership.job_of(forged) != ownership.job_of(pod(OWNER))
    assert str(ownership.of(forged).job).startswith("demo/u/")


def test_a_pod_whose_requests_are_not_known_fills_its_node_and_is_charged_to_nobody():
    account = ownership.of(pod(OWNER, containers=(manifests.container(cpu="much"),)))
    assert dataclasses.replace(account.resources, extended=()) == translate.WHOLE_NODE
    assert (account.node, account.job, account.queue) == ("n1", None, None)
