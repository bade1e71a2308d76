"""Convert a job's pending attempts to the scheduler's job, classes and tasks, and placed tasks to pods."""

import dataclasses
import functools
import hashlib
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from boathouse.cluster import catalogue, wire
from boathouse.fair import Buckets
from boathouse.resources import names, quantity
from boathouse.scheduling import jobs
from boathouse.scheduling.pods import ownership
from boathouse.services.frame import manifests
from boathouse.services.frame.related_objects import RelatedObjects
from boathouse.services.mrjob import hdfs, pod_builder
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.model import MIB, MRJOBS, Job, JobUid
from boathouse.services.mrjob.settle import Attempt
from boathouse_policies import model, run_times
from boathouse_task.contract import Plan, TaskType

Avoided: TypeAlias = Mapping[Attempt, frozenset[model.NodeName]]
"""The nodes on which pending attempts must not run, of those that must avoid some."""
NOWHERE: Final[Avoided] = types.MappingProxyType({})
_SETTINGS: Final = pod_builder.PodSettings(progress_url="", scratch_bytes=0)
"""For classes, which do not depend on the operator's settings."""


async def missing_files(job: Job, related: RelatedObjects) -> Sequence[str]:
    """Return messages about the ConfigMaps of the job's files that are missing."""
    files = [(file.name, file.config_map_key_ref) for file in job.spec.files or () if file.config_map_key_ref]
    missing = await related.missing_keys(job.namespace, [(reference.name, reference.key) for _, reference in files])
    return [f"file {name}: {why}" for (name, _), why in zip(files, missing, strict=True) if why]


def admit(
    retries: Buckets, namespace: str, waiting: Sequence[Attempt], granted: frozenset[Attempt]
) -> tuple[list[Attempt], frozenset[Attempt]]:
    """Return the attempts that may start now, and which used a token; first ones, or with a pod, need none."""
    admitted, kept = list[Attempt](), set[Attempt]()
    for attempt in waiting:
        bare = dataclasses.replace(attempt, pod_uid=None)
        if attempt.number > 1:
            if attempt.pod_uid is None and bare not in granted and not retries.take(namespace):
                continue
            kept.add(bare)
        admitted.append(attempt)
    return admitted, frozenset(kept)


def scheduler_job(job: Job, priority: int = 0) -> model.Job:
    """Return the job in the scheduler's model."""
    return job.job(priority, kind=program(job))


def probe_uid(uid: JobUid) -> JobUid:
    """Return the UID under which the scheduler and the pods know the probe of a job."""
    return JobUid(f"{uid}{ownership.PROBE}")


def probe_job(job: Job, priority: int = 0) -> model.Job:
    """Return a job's probe in the scheduler's model: a job of its own, with its own usage."""
    own_id, job_id = model.JobId(probe_uid(job.uid)), model.JobId(job.uid)
    return dataclasses.replace(scheduler_job(job, priority), id=own_id, probe_of=job_id)


def probe_class(job: Job) -> model.TaskClass:
    """Return the class of a probe's task."""
    return dataclasses.replace(_class(job, TaskType.PROBE, 0, model.UNKNOWN), job=model.JobId(probe_uid(job.uid)))


def program(job: Job) -> str:
    """Return the identity of a job's program, `NAMESPACE/HASH` with a hash of its commands, files and image."""
    stages = [(step.mapper.command, step.reducer.command if step.reducer else (), step.combiner) for step in job.steps]
    files = sorted(file.model_dump_json() for file in job.spec.files or ())
    text = json.dumps([job.image, stages, files], default=str)
    return f"{job.namespace}/{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def run_times_stage(job: Job, task_type: TaskType, step: int) -> run_times.Stage:
    """Return a job's stage in the model of the run time learner."""
    stage = job.stage(task_type, step)
    return run_times.Stage(
        job=model.JobId(job.uid),
        program=program(job),
        step=step,
        stage=model.Stage(task_type.value),
        ideal_bytes=stage.resources.memory_request_bytes,
        least_bytes=stage.min_memory_bytes - MIB if stage.min_memory_bytes else None,
        slowdown=stage.slowdown,
    )


def classes_in_use(
    job: Job,
    attempts: Iterable[Attempt | AttemptPod],
    current_classes: Iterable[model.TaskClass] = (),
    avoided: Avoided = NOWHERE,
) -> list[model.TaskClass]:
    """Return a class for each stage with pending or running attempts, in order.

    Classes are those of `current_classes`, or without estimates. Policies know classes whose tasks all run, too.
    Attempts that must avoid nodes have classes of their own, which follow those of all stages.
    """
    order, used = list(TaskType), {(attempt.step, attempt.task_type) for attempt in attempts}
    stages = sorted(used, key=lambda stage: (stage[0], order.index(stage[1])))
    by_id = {task_class.id: task_class for task_class in current_classes}
    classes = [by_id.get(class_id(job, kind, step)) or _class(job, kind, step, model.UNKNOWN) for step, kind in stages]
    classes_by_id, apart = {task_class.id: task_class for task_class in classes}, {}
    for attempt, nodes in avoided.items():
        usual = classes_by_id[class_id(job, attempt.task_type, attempt.step)]
        own_id, constraints = _class_id_apart(usual.id, nodes), usual.constraints.avoiding(nodes)
        apart[own_id] = dataclasses.replace(usual, id=own_id, constraints=constraints)
    return [*classes, *apart.values()]


def _class_id_apart(usual: model.ClassId, avoided: frozenset[model.NodeName]) -> model.ClassId:
    digest = hashlib.blake2b("/".join(sorted(avoided)).encode(), digest_size=6).hexdigest()
    return model.ClassId(f"{usual}/not-on-{digest}")


def step_classes(
    job: Job, step: int, stages: Iterable[TaskType], plan: Plan | None, learner: run_times.Learner
) -> list[model.TaskClass]:
    """Return the classes of a step, in order, with the estimates for them."""
    reads: dict[TaskType, float] = {}  # bytes of a task; those of a reduce are unknown before the shuffle
    if plan is not None and plan.splits:
        reads = {TaskType.MAP: plan.bytes_total / len(plan.splits), TaskType.UBER: float(plan.bytes_total)}
    learned = {stage: learner.estimates(run_times_stage(job, stage, step), reads.get(stage, 0.0)) for stage in stages}
    return [_class(job, stage, step, estimates) for stage, estimates in learned.items()]


class Factory:
    """Builds the pods of attempts that are submitted."""

    resource: ClassVar[catalogue.Resource[wire.Manifest]] = MRJOBS

    def __init__(
        self,
        builder: pod_builder.PodBuilder,
        attempts: Iterable[Attempt],
        control: jobs.TaskControl | None = None,
        avoided: Avoided = NOWHERE,
    ) -> None:
        self.control, self._builder, self._avoided = control, builder, avoided
        self.attempts = {task_id(builder.job, attempt): attempt for attempt in attempts}

    def tasks(self, plan: Plan | None, node_of: hdfs.NodeOf) -> list[model.Task]:
        """Return the attempts as tasks; maps have the nodes that store their split."""
        node_of = functools.cache(node_of)
        return [
            model.Task(
                id=task,
                task_class=self._class_of(attempt),
                index=attempt.index,
                locations=tuple(hdfs.locations(attempt.task_type, attempt.index, plan, node_of)),
                pod_uid=model.PodUid(attempt.pod_uid) if attempt.pod_uid else None,
            )
            for task, attempt in self.attempts.items()
        ]

    def _class_of(self, attempt: Attempt) -> model.ClassId:
        usual, avoided = class_id(self._builder.job, attempt.task_type, attempt.step), self._avoided.get(attempt)
        return _class_id_apart(usual, avoided) if avoided else usual

    def build(
        self,
        task: model.TaskId,
        resources: model.Resources,
        node: model.NodeName | None,
        _expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return the pod's manifest, without the leader's epoch."""
        attempt = self.attempts[task]
        wanted = self._builder.job.stage(attempt.task_type, attempt.step).resources
        decided = dataclasses.replace(
            wanted,
            cpu_milli=resources.cpu_milli,
            cpu_limit_milli=max(wanted.cpu_limit_milli, resources.cpu_milli + 1),
            memory_bytes=resources.memory_bytes + MIB,
        )
        manifest = self._builder.build(attempt, decided, node)
        if decided.memory_bytes < wanted.memory_bytes:
            less, all_ = quantity.format_bytes(decided.memory_bytes), quantity.format_bytes(wanted.memory_bytes)
            why = "no node had more free memory, and this does not delay the job"
            manifest["metadata"]["annotations"] |= {
                names.ANNOTATION_IDEAL_MEMORY: str(wanted.memory_bytes),
                names.ANNOTATION_DECISION: f"started with {less} of memory instead of {all_}: {why}",
            }
        return manifest


def task_id(job: Job, attempt: Attempt) -> model.TaskId:
    """Return the ID of an attempt's task, `NAMESPACE/PODNAME`."""
    return model.TaskId(f"{job.namespace}/{pod_builder.pod_name(job, attempt)}")


def class_id(job: Job, task_type: TaskType, step: int) -> model.ClassId:
    """Return the ID of a stage's class, such as `UID/0/map`."""
    return model.ClassId(f"{job.uid}/{step}/{task_type}")


def _class(job: Job, task_type: TaskType, step: int, estimates: model.Estimates) -> model.TaskClass:
    resources = job.stage(task_type, step).resources
    return model.TaskClass(
        id=class_id(job, task_type, step),
        job=model.JobId(job.uid),
        cpu_limit_milli=resources.cpu_limit_milli,
        stage=model.Stage(task_type.value),
        step=step,
        estimates=estimates,
        **manifests.pod_class(pod_builder.PodBuilder(job=job, settings=_SETTINGS).stage(task_type, step, resources)),
    )
