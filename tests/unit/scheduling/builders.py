"""Pods and nodes for the tests, as short as a test needs them."""

from typing import Any

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling import transforms
from boathouse.scheduling.pods import facts, rows
from boathouse_policies import model


def container(name: str = "main", **requests: str) -> wire.Container:
    return wire.Container(name=name, resources=wire.ResourceRequirements(requests=_named(requests)))


def sidecar(name: str, **requests: str) -> wire.Container:
    return wire.Container(
        name=name, restart_policy="Always", resources=wire.ResourceRequirements(requests=_named(requests))
    )


def status_of(name: str, *, actuated: dict[str, str] | None, allocated: dict[str, str] | None = None):
    resources = None if actuated is None else wire.ResourceRequirements(requests=actuated)
    return wire.ContainerStatus(name=name, resources=resources, allocated_resources=allocated or {})


def pod(
    name: str = "p",
    *,
    containers: tuple[wire.Container, ...] = (),
    conditions: tuple[wire.Condition, ...] = (),
    statuses: tuple[wire.ContainerStatus, ...] = (),
    meta: dict[str, Any] | None = None,
    phase: str = "Pending",
    **spec: Any,
) -> wire.PodView:
    metadata = {"name": name, "namespace": "demo", "uid": f"uid-{name}"} | (meta or {})
    return wire.PodView(
        metadata=wire.ObjectMeta(**metadata),
        spec=wire.PodSpec(containers=containers or (container(cpu="1", memory="1Gi"),), **spec),
        status=wire.PodStatus(phase=phase, conditions=conditions, container_statuses=statuses),
    )


TRANSFORM_POD = transforms.pods(names.SCHEDULER_NAME, labels=mrjob_names.POD_LABELS)


def facts_of(name: str = "p", **parts: Any) -> facts.PodFacts:
    """What is kept of a pod on our scheduler."""
    return TRANSFORM_POD(pod(name, **{"scheduler_name": names.SCHEDULER_NAME} | parts))


def operation(
    name: str = "demo/p", *, node: str | None = "n1", uid: str | None = None, job: str = "j"
) -> rows.Operation:
    """A write that was decided: a bind if there is a UID, without a node a create ahead."""
    task = model.Task(id=model.TaskId(name), task_class=model.ClassId(f"{job}/map"), pod_uid=uid and model.PodUid(uid))
    size = model.Resources()
    task_class = model.TaskClass(id=task.task_class, job=model.JobId(job), resources=size)
    owner = model.Job(id=task_class.job, queue=model.QueueName("default"), submitted_s=0)
    kind = model.Bind if uid else model.Create
    where = node and kind(task=task, task_class=task_class, job=owner, node=model.NodeName(node), resources=size)
    return rows.Operation(rows.PodRow(task.id, name.partition("/")[0]), task, task_class, where or None, 0.0)


def node(name: str = "n1", *, ready: bool = True, labels: dict[str, str] | None = None, **spec: Any) -> wire.NodeView:
    allocatable = spec.pop("allocatable", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    return wire.NodeView(
        metadata=wire.ObjectMeta(name=name, labels=labels or {}),
        spec=wire.NodeSpec(**spec),
        status=wire.NodeStatus(
            allocatable=allocatable, conditions=(wire.Condition(type="Ready", status="True" if ready else "False"),)
        ),
    )


def _named(requests: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in requests.items()}
