"""A cluster as the scheduler sees it: a job whose tasks are the hosts without a node, and their pods. Pure.

Requests and constraints of a class are those of the manifest, so that the room that the scheduler finds is the room
that the pod takes. A host with a claim has a class of its own, because its claim decides which nodes it may have.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from boathouse.cluster import catalogue, wire
from boathouse.resources.mrcluster.names import LABEL_HOST, Role
from boathouse.scheduling import scheduler
from boathouse.services.frame import manifests
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrcluster import objects, pods
from boathouse.services.mrcluster.files import Rendered
from boathouse.services.mrcluster.model import MRCLUSTERS, Cluster, host_of, known_role, number_of
from boathouse.services.mrcluster.planning.observation import NodePod
from boathouse.services.mrcluster.scaling import Submission
from boathouse_policies import koala, model

NODE_S: Final = 60.0
"""What orders by size take as a node's run time, which has no end: about the time of its start."""
_ROLES: Final = (Role.MASTER, Role.CORE, Role.TRANSIENT)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePods:
    """Builds the pods of a cluster's hosts. Running nodes take no orders: they are never suspended or started twice.

    With `may_format` the written status never had an ID of HDFS: only then is an empty volume formatted.
    """

    resource: ClassVar[catalogue.Resource[wire.Manifest]] = MRCLUSTERS
    control: ClassVar[None] = None
    cluster: Cluster
    rendered: Rendered
    may_format: bool

    def task(self, host: str) -> model.TaskId:
        """Return the scheduler's name of a host's pod, `NAMESPACE/PODNAME`."""
        return model.TaskId(f"{self.cluster.namespace}/{self.cluster.named(host)}")

    def host(self, task: model.TaskId) -> str:
        """Return the host of a task; empty if no host has it."""
        return self.cluster.host(task.partition("/")[2]) or ""

    def manifest(self, host: str) -> dict[str, Any]:
        """Return the manifest of a host's pod, without a node and without the leader's epoch."""
        return pods.of(self.cluster, host, self.rendered, may_format=self.may_format)

    def build(
        self,
        task: model.TaskId,
        _resources: model.Resources,
        node: model.NodeName | None,
        _expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return the manifest of a task's pod; its size is that of the spec."""
        manifest = self.manifest(self.host(task))
        if node is not None:
            manifest["spec"]["nodeName"] = node
        return manifest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The scheduler's input for a cluster: its classes by role, without claims, and those of its tasks in their order.

    The tasks are the hosts that have no node: those without a pod, and pods without a node.
    """

    job: model.Job
    roles: Mapping[Role, model.TaskClass]
    classes: tuple[model.TaskClass, ...]
    tasks: tuple[model.Task, ...]
    factory: NodePods

    def submission(self, constants: koala.Config) -> Submission:
        """Return the cluster as the policies know it."""
        stores = constants.policy is koala.Policy.GGDP or Role.TRANSIENT not in self.roles
        counts = {task_class.id: 0 for task_class in self.roles.values()}
        for task in self.tasks:
            counts[self.roles[known_role(self.factory.host(task.id))].id] += 1
        return Submission(
            job=self.job,
            classes=tuple(self.roles.values()),
            worker=self.roles[Role.CORE if stores else Role.TRANSIENT].id,
            tasks=counts,
            constants=constants,
        )


def of(pods: NodePods, wanted: Iterable[str], nodes: Iterable[NodePod] = (), *, priority: int = 0) -> Nodes:
    """Return a cluster's nodes for the scheduler.

    `wanted` hosts shall have a pod and have none. Pods without a node must be submitted, too: they wait for a binding.
    """
    cluster = pods.cluster
    roles = {role: _class(pods, role) for role in _ROLES if cluster.spec.compute or role is not Role.TRANSIENT}
    unplaced = {pod.host: model.PodUid(pod.uid) for pod in nodes if pod.life is PodLife.UNPLACED and not pod.is_over}
    hosts = sorted({*wanted, *unplaced}, key=lambda host: (_ROLES.index(known_role(host)), number_of(host)))
    classes = {host: _with_claim(cluster, roles[known_role(host)], host) for host in hosts}
    return Nodes(
        job=cluster.job(priority, weight=cluster.spec.weight),
        roles=roles,
        classes=tuple({task_class.id: task_class for task_class in classes.values()}.values()),
        tasks=tuple(
            model.Task(
                id=pods.task(host), task_class=classes[host].id, index=number_of(host), pod_uid=unplaced.get(host)
            )
            for host in hosts
        ),
        factory=pods,
    )


def submit(target: scheduler.Scheduler, nodes: Nodes) -> None:
    """Have nodes scheduled.

    The scheduler uses a name once, in case its owner has not seen that the pod ended. Hosts keep their names, and the
    API server has no two pods of a name: a host whose pod ended is submitted as new.
    """
    if target.submit(nodes.job, nodes.classes, nodes.tasks, nodes.factory):
        target.withdraw(nodes.job.id)
        target.submit(nodes.job, nodes.classes, nodes.tasks, nodes.factory)


def _class(pods: NodePods, role: Role) -> model.TaskClass:
    class_fields = manifests.pod_class(pods.manifest(host_of(role, 0)), own_labels={LABEL_HOST})
    class_fields["constraints"] = dataclasses.replace(class_fields["constraints"], claims=())
    return model.TaskClass(
        id=model.ClassId(f"{pods.cluster.uid}/{role}"),
        job=model.JobId(pods.cluster.uid),
        stage=model.Stage.NODE,
        estimates=model.Fixed(seconds=NODE_S),
        **class_fields,
    )


def _with_claim(cluster: Cluster, role_class: model.TaskClass, host: str) -> model.TaskClass:
    if not objects.has_claim(cluster, host):
        return role_class
    constraints = dataclasses.replace(role_class.constraints, claims=(cluster.claim_key(host),))
    return dataclasses.replace(role_class, id=model.ClassId(f"{cluster.uid}/{host}"), constraints=constraints)
