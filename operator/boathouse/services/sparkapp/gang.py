"""The gang of an attempt: its driver, and the minimum of its executors, for which room is reserved. Pure.

An expected executor has no pod, and none is created for it: the driver requests executors, and each of their pods takes
the place of an expected one. What is reserved follows from the objects that exist, so a crash of the operator keeps it.

While they wait for nodes, a placeholder stands for each, so that an autoscaler sees what they need. It is never bound.
It has what decides about nodes (requests, selectors, affinity, tolerations, claims, priority), the image and the user,
which policies of the cluster may check, and nothing that runs. It is within Pod Security `restricted`, because the pod
for which it stands is.
"""

import bisect
import dataclasses
import hashlib
import json
from typing import Any, ClassVar, Final

from boathouse.cluster import catalogue, wire
from boathouse.resources.sparkapp.names import TASK_TYPE_DRIVER, TASK_TYPE_EXECUTOR
from boathouse.services.frame import manifests
from boathouse.services.sparkapp import pods, sizing
from boathouse.services.sparkapp.model import SPARKAPPS, App, AttemptNames
from boathouse.services.sparkapp.observation import DriverPod
from boathouse_policies import model, run_times

_OF_SPARK: Final = ("spark-app-selector", "spark-role", "spark-exec-id")
"""Labels by which a driver knows its executors, and takes pods for these."""
_KEPT: Final = (
    *("schedulerName", "nodeSelector", "affinity", "tolerations", "priorityClassName", "securityContext"),
    *("enableServiceLinks", "restartPolicy"),
)
_KEPT_OF_CONTAINERS: Final = ("name", "image", "resources", "securityContext")


def resized(app: App, memory_bytes: int) -> App:
    """Return the application with the largest heap with which an executor's pod requests at most so much.

    It is unchanged if that is the heap of its spec. Raises a ValueError if an executor with the least heap requests
    more.
    """
    if memory_bytes >= app.executor.memory_bytes:
        return app
    if app.elastic is None or memory_bytes < app.elastic.least.memory_bytes:
        raise ValueError(f"executors cannot have {memory_bytes} bytes of memory: they need more")
    heaps = range(1, sizing.mebibytes(app.conf.get(sizing.HEAP, sizing.DEFAULT_MEMORY)) + 1)
    heap = bisect.bisect_right(heaps, memory_bytes, key=lambda heap: _requests(app, heap).memory_bytes)
    return dataclasses.replace(
        app, conf={**app.conf, sizing.HEAP: f"{heap}m"}, executor=_requests(app, heap), ideal_executor=app.executor
    )


def with_chosen_memory(app: App, driver: DriverPod | None) -> App:
    """Return the application with the size of executors that was chosen for a driver, if it has a valid one."""
    chosen, elastic = driver.executor_bytes if driver else 0, app.elastic
    return resized(app, chosen) if elastic is not None and chosen >= elastic.least.memory_bytes else app


def _requests(app: App, heap: int) -> sizing.Requests:
    return sizing.executor({**app.conf, sizing.HEAP: f"{heap}m"}, is_python=app.is_python)


def placeholder(manifest: manifests.Manifest) -> manifests.Manifest:
    """Return the placeholder of a pod, without a name."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    claims = [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume]
    return {
        **manifest,
        "metadata": {
            "namespace": metadata["namespace"],
            "ownerReferences": metadata["ownerReferences"],
            "labels": {key: value for key, value in metadata["labels"].items() if key not in _OF_SPARK},
        },
        "spec": {
            **{field: value for field, value in spec.items() if field in _KEPT},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {**{field: container[field] for field in _KEPT_OF_CONTAINERS}, "command": ["true"]}
                for container in spec["containers"]
            ],
            **({"volumes": claims} if claims else {}),
        },
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The scheduler's input for an attempt: the driver, also while it runs, and the executors that are expected.

    `stage` is for learning the executors' run times; None if they have all their memory always.
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
        """Return the manifest of the driver's pod, without the fence's epoch."""
        app = self.app if expected is None else resized(self.app, expected.memory_bytes)
        manifest = pods.driver(app, self.attempt)
        if node is not None:
            manifest["spec"]["nodeName"] = node
        return manifest

    def build_expected(self, expected: model.Resources | None) -> dict[str, Any]:
        """Return an executor like those of the driver, as far as admission looks at it, owned by the application."""
        app = self.app if expected is None else resized(self.app, expected.memory_bytes)
        return pods.trial_executor(app, self.attempt)

    def build_placeholder(self, *, is_driver: bool) -> dict[str, Any]:
        """Return what stands for the driver or for an executor while they wait for nodes, without a name."""
        return placeholder((pods.driver if is_driver else pods.trial_executor)(self.app, self.attempt))


def of(
    app: App,
    attempt: int,
    *,
    minimum: int,
    driver_uid: str = "",
    priority: int = 0,
    estimates: model.Estimates = model.UNKNOWN,
) -> Gang:
    """Return the gang of an attempt, whose minimum is 0 once the reservation of executors expired.

    The scheduler needs the driver for as long as it runs: executors are those of a driver that was submitted last. It
    also counts which of the minimum the driver has created. `driver_uid` is that of a driver's pod that has no node
    yet. The estimates are of the executors' run times. The driver runs as long as they do.
    """
    names = app.attempt(attempt)
    executor = _class(app, TASK_TYPE_EXECUTOR, pods.trial_executor(app, names), app.minimum, estimates)
    seconds = estimates.duration_s(executor.resources)
    driver = _class(app, TASK_TYPE_DRIVER, pods.driver(app, names), 1, model.Fixed(seconds=seconds))
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
    job, tasks = app.job(priority, kind=program(app)), (pending, *executors)
    return Gang(job=job, driver=driver, executor=executor, tasks=tasks, stage=executor_stage(app))


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


def program(app: App) -> str:
    """Return the identity of an application's program, `NAMESPACE/HASH` with a hash of its file and main class."""
    text = json.dumps([app.spec.type, app.spec.main_application_file, app.spec.main_class])
    return f"{app.namespace}/{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _class(
    app: App, task_type: str, manifest: manifests.Manifest, gang_min: int, estimates: model.Estimates
) -> model.TaskClass:
    return model.TaskClass(
        id=model.ClassId(f"{app.uid}/{task_type}"),
        job=model.JobId(app.uid),
        stage=model.Stage(task_type),
        gang_min=gang_min,
        estimates=estimates,
        **manifests.pod_class(manifest, own_labels=pods.OF_TRIALS if task_type == TASK_TYPE_EXECUTOR else ()),
    )
