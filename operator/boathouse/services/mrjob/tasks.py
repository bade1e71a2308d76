"""From a job's waiting attempts to the scheduler's job, classes and tasks, and back to pods."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from boathouse.resources import mrjob
from boathouse.services.mrjob import pods
from boathouse.services.mrjob.attempts import Attempt
from boathouse.services.mrjob.model import Job, Resources
from boathouse_policies import model
from boathouse_task import contract
from boathouse_task.contract import TaskType


def scheduler_job(job: Job) -> model.Job:
    """The job as the queues see it."""
    return model.Job(
        id=model.JobId(job.uid),
        queue=model.QueueName(job.queue),
        submitted_s=job.created_s,
        name=f"{job.namespace}/{job.name}",
    )


def classes(job: Job, attempts: Sequence[Attempt]) -> list[model.TaskClass]:
    """One class for each stage that waits."""
    stages = dict.fromkeys((each.step, each.task_type) for each in attempts)
    return [_class(job, task_type, step) for step, task_type in stages]


def tasks(job: Job, attempts: Sequence[Attempt], plan: contract.Plan | None) -> list[model.Task]:
    """The attempts, maps with the nodes that hold their split."""
    return [_task(job, attempt, plan) for attempt in attempts]


@dataclasses.dataclass(frozen=True, slots=True)
class Factory:
    """Builds the pod of a task that the scheduler has placed; registered with each job."""

    builder: pods.PodBuilder

    def build(self, task: model.TaskId, resources: model.Resources, node: model.NodeName | None) -> dict[str, Any]:
        """The pod's manifest, without the fence's epoch."""
        attempt = pods.parse_attempt(task.rpartition("/")[2])
        decided = pods.with_decided(
            self.builder.job.stage(attempt.task_type, attempt.step).resources,
            cpu_milli=resources.cpu_milli,
            memory_request_bytes=resources.memory_bytes,
        )
        return self.builder.build(attempt, decided, node)


def task_id(job: Job, attempt: Attempt) -> model.TaskId:
    """`NAMESPACE/PODNAME`."""
    return model.TaskId(f"{job.namespace}/{pods.pod_name(job, attempt)}")


def class_id(job: Job, task_type: TaskType, step: int) -> model.ClassId:
    """`UID/0/map`."""
    return model.ClassId(f"{job.uid}/{step}/{task_type}")


def _class(job: Job, task_type: TaskType, step: int) -> model.TaskClass:
    return model.TaskClass(
        id=class_id(job, task_type, step),
        job=model.JobId(job.uid),
        resources=_resources(job.stage(task_type, step).resources),
        stage=model.Stage(task_type.value),
        constraints=model.Constraints(
            node_selector=job.node_selector,
            tolerations=tuple(_toleration(each) for each in job.tolerations),
        ),
    )


def _task(job: Job, attempt: Attempt, plan: contract.Plan | None) -> model.Task:
    locations: Sequence[str] = ()
    if attempt.task_type is TaskType.MAP and plan is not None:
        which = plan.splits[attempt.index].locations
        locations = plan.location_sets[which] if which >= 0 else ()
    return model.Task(
        id=task_id(job, attempt),
        task_class=class_id(job, attempt.task_type, attempt.step),
        index=attempt.index,
        locations=tuple(model.NodeName(each) for each in locations),
        pod_uid=model.PodUid(attempt.pod_uid) if attempt.pod_uid else None,
    )


def _resources(resources: Resources) -> model.Resources:
    """What the pod's requests are: that is what a node has less of."""
    return model.Resources(
        cpu_milli=resources.cpu_milli,
        memory_bytes=resources.memory_request_bytes,
        ephemeral_storage_bytes=resources.ephemeral_storage_bytes,
        extended=resources.extended,
    )


def _toleration(toleration: mrjob.Toleration) -> model.Toleration:
    return model.Toleration(
        key=toleration.key or "",
        operator=model.TolerationOperator(toleration.operator),
        value=toleration.value or "",
        effect=model.TaintEffect(toleration.effect) if toleration.effect else None,
    )
