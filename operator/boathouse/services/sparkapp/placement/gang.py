"""The gang of an attempt: its driver, and the minimum of its executors, for which room is reserved. Pure.

An expected executor has no pod, and none is created for it: the driver requests executors, and each of their pods takes
the place of an expected one. What is reserved follows from the objects that exist, so a crash of the operator keeps it.
"""

import dataclasses
import hashlib
import json
from typing import Any, ClassVar

from boathouse.cluster import catalogue, wire
from boathouse.resources.sparkapp.names import TASK_TYPE_DRIVER, TASK_TYPE_EXECUTOR
from boathouse.services.frame import pod_class
from boathouse.services.frame.manifests import Manifest
from boathouse.services.sparkapp.app import SPARKAPPS, App
from boathouse.services.sparkapp.submission import driver_pod, executor_memory, executor_template, placeholder
from boathouse.services.sparkapp.submission.naming import AttemptNames
from boathouse_policies import model, run_times


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The scheduler's input for an attempt.

    Attributes:
        tasks: The driver, also while it runs, and the executors that are expected.
        stage: The executors, for learning their run times; None if they have all their memory always.
    """

    job: model.Job
    driver: model.TaskClass
    executor: model.TaskClass
    tasks: tuple[model.Task, ...]
    stage: run_times.Stage | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DriverFactory:
    """Builds the pod of a driver: the only task of an application that Boathouse creates a pod for."""

    resource: ClassVar[catalogue.Resource[wire.Manifest]] = SPARKAPPS
    control: ClassVar[None] = None
    app: App
    attempt: AttemptNames

    def build(
        self,
        _task: model.TaskId,
        _resources: model.Resources,
        node: model.NodeName | None,
        expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return the manifest of the driver's pod, without the fence's epoch.

        Raises:
            ValueError: The executors cannot have as little memory as was chosen.
        """
        app = self.app if expected is None else executor_memory.resized(self.app, expected.memory_bytes)
        manifest = driver_pod.build(app, self.attempt)
        if node is not None:
            manifest["spec"]["nodeName"] = node
        return manifest

    def build_expected(self, expected: model.Resources | None) -> dict[str, Any]:
        """Return an executor like those of the driver, as far as admission looks at it, owned by the application."""
        app = self.app if expected is None else executor_memory.resized(self.app, expected.memory_bytes)
        return executor_template.build_like_spark(app, self.attempt)

    def build_placeholder(self, *, is_driver: bool) -> dict[str, Any]:
        """Return what stands for the driver or for an executor while they wait for nodes, without a name."""
        if is_driver:
            return placeholder.of(driver_pod.build(self.app, self.attempt))
        return placeholder.of(executor_template.build_like_spark(self.app, self.attempt))


def of(
    app: App,
    attempt: int,
    *,
    minimum: int,
    driver_uid: str = "",
    priority: int = 0,
    estimates: model.Estimates = model.UNKNOWN,
) -> Gang:
    """Return the gang of an attempt.

    The scheduler needs the driver for as long as it runs: executors are those of a driver that was submitted last. It
    also counts which of the minimum the driver has created.

    Args:
        app: The application.
        attempt: The number of the attempt.
        minimum: The minimum of executors; 0 once their reservation expired.
        driver_uid: The UID of a driver's pod that has no node yet.
        priority: The value of the application's PriorityClass.
        estimates: Of the executors' run times. The driver runs as long as they do.
    """
    names = AttemptNames(application=app.name, uid=app.uid, attempt=attempt)
    executor = _class(app, TASK_TYPE_EXECUTOR, executor_template.build_like_spark(app, names), app.minimum, estimates)
    seconds = estimates.duration_s(executor.resources)
    driver = _class(app, TASK_TYPE_DRIVER, driver_pod.build(app, names), 1, model.Fixed(seconds=seconds))
    pending = model.Task(
        id=model.TaskId(f"{app.namespace}/{names.driver_pod}"),
        task_class=driver.id,
        pod_uid=model.PodUid(driver_uid) if driver_uid else None,
    )
    executors = tuple(
        model.Task(
            id=model.TaskId(f"{app.namespace}/{names.executor_prefix}#{number}"),  # no pod can have this name
            task_class=executor.id,
            index=number,
            expected=True,
        )
        for number in range(minimum)
    )
    tasks = (pending, *executors)
    return Gang(job=_job(app, priority), driver=driver, executor=executor, tasks=tasks, stage=executor_stage(app))


def executor_stage(app: App) -> run_times.Stage | None:
    """Return the executors as the learner of run times knows them; None if they have all their memory always."""
    if app.elastic is None:
        return None
    return run_times.Stage(
        job=model.JobId(app.uid),
        program=program(app),
        step=0,
        stage=model.Stage.EXECUTOR,
        ideal_bytes=(app.ideal_executor or app.executor).memory_bytes,
        least_bytes=app.elastic.least.memory_bytes,
        slowdown=app.elastic.slowdown,
    )


def _job(app: App, priority: int) -> model.Job:
    return model.Job(
        id=model.JobId(app.uid),
        queue=model.QueueName(app.queue),
        submitted_s=app.created_s,
        name=f"{app.namespace}/{app.name}",
        namespace=model.NamespaceName(app.namespace),
        priority=priority,
        priority_class=app.template.priority_class,
        kind=program(app),
    )


def program(app: App) -> str:
    """Return the identity of an application's program, `NAMESPACE/HASH` with a hash of its file and main class."""
    text = json.dumps([app.spec.type, app.spec.main_application_file, app.spec.main_class])
    return f"{app.namespace}/{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _class(app: App, task_type: str, manifest: Manifest, gang_min: int, estimates: model.Estimates) -> model.TaskClass:
    return model.TaskClass(
        id=model.ClassId(f"{app.uid}/{task_type}"),
        job=model.JobId(app.uid),
        stage=model.Stage(task_type),
        gang_min=gang_min,
        estimates=estimates,
        **pod_class.of(manifest, own_labels=executor_template.OF_TRIALS if task_type == TASK_TYPE_EXECUTOR else ()),
    )
