"""A job is admitted to a queue that accepts its namespace and its PriorityClass."""

import pytest

from boathouse.resources.config import OperatorConfig, QueueConfig
from boathouse.services.frame.kind import Refusal
from boathouse.services.mrjob import model, submission
from tests.builders import mrjobs

CONFIG = OperatorConfig(
    queues=[
        QueueConfig(name="default"),
        QueueConfig(name="demo", namespaces=["demo"], priority_classes=["low", "high"]),
        QueueConfig(name="other", namespaces=["other"]),
    ],
    task={"image": "task:dev"},
)


@pytest.mark.parametrize(
    ("queue", "priority_class"), [("default", "any"), ("demo", "low"), ("demo", "high"), ("demo", None)]
)
def test_a_job_may_use_a_queue_that_accepts_it(queue, priority_class):
    template = {"podTemplate": {"priorityClassName": priority_class}} if priority_class else {}
    job = model.from_resource(mrjobs.mrjob(queue=queue, **template), CONFIG)
    assert isinstance(job, model.Job)
    scheduled = submission.scheduler_job(job)
    assert (scheduled.queue, scheduled.namespace, scheduled.priority_class) == (queue, "demo", priority_class or "")


def test_a_job_is_refused_by_a_queue_that_does_not_accept_its_namespace():
    assert model.from_resource(mrjobs.mrjob(queue="other"), CONFIG) == Refusal(
        reason="QueueNotAllowed",
        message='the queue "other" does not accept the namespace demo: set spec.queue to another, or have the '
        "namespace added to the queue in the chart",
    )


def test_a_job_is_refused_by_a_queue_that_does_not_accept_its_priority_class():
    template = {"priorityClassName": "urgent"}
    assert model.from_resource(mrjobs.mrjob(queue="demo", podTemplate=template), CONFIG) == Refusal(
        reason="QueueNotAllowed",
        message='the queue "demo" does not accept the PriorityClass urgent: set spec.queue to another, or '
        "spec.podTemplate.priorityClassName to one of low, high",
    )


def test_a_namespaces_label_gives_a_job_no_queue_that_does_not_accept_it():
    config = CONFIG.model_copy()
    config.follow(lambda _: "other")
    refusal = model.from_resource(mrjobs.mrjob(), config)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "QueueNotAllowed"
