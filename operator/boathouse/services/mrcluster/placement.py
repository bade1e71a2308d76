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
from boathouse.services.mrcluster.model import MRCLUSTERS, Cluster, Names, host_of, number_of, role_of
from boathouse.services.mrcluster.planning.observation import NodePod, Wanted
from boathouse.services.mrcluster.pods import PodSettings
from boathouse.services.mrcluster.scaling import Submission
from boathouse_policies import koala, model

NODE_S: Final = 60.0
"""What orders by size take as a node's run time, which has no end: about the time of its start."""
_ROLES: Final = (Role.MASTER, Role.CORE, Role.TRANSIENT)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePods:
    """Builds the pod of each host of a cluster.

    Attributes:
        rendered: The cluster's settings.
        settings: Settings of the operator.
        may_format: Whether the written status never had an ID of HDFS: only then is an empty volume formatted.
    """

    cluster: Cluster
    rendered: Rendered
    settings: PodSettings
    may_format: bool

    def task(self, host: str) -> model.TaskId:
        """Return the scheduler's name of a host's pod, `NAMESPACE/PODNAME`."""
        return model.TaskId(f"{self.cluster.namespace}/{Names(self.cluster).pod(host)}")

    def build(self, host: str) -> dict[str, Any]:
        """Return the manifest of a host's pod, without a node.

        Raises:
            ValueError: No host has this name, or its daemons need more memory.
        """
        match role_of(host):
            case Role.MASTER:
                return pods.master_pod(self.cluster, self.rendered, self.settings, may_format=self.may_format)
            case Role.CORE | Role.TRANSIENT as role:
                return pods.worker_pod(self.cluster, host, role, self.rendered)
            case _:
                raise ValueError(f'"{host}" is not the name of a host of a cluster')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodeFactory:
    """Builds the pods of submitted nodes. Running nodes take no orders: they are never suspended or started twice.

    Attributes:
        hosts: Hosts by task.
    """

    resource: ClassVar[catalogue.Resource[wire.Manifest]] = MRCLUSTERS
    control: ClassVar[None] = None
    pods: NodePods
    hosts: Mapping[model.TaskId, str]

    def build(
        self,
        task: model.TaskId,
        _resources: model.Resources,
        node: model.NodeName | None,
        _expected: model.Resources | None = None,
    ) -> dict[str, Any]:
        """Return the pod's manifest, without the leader's epoch; its size is that of the spec.

        Raises:
            ValueError: The daemons need more memory.
        """
        manifest = self.pods.build(self.hosts[task])
        if node is not None:
            manifest["spec"]["nodeName"] = node
        return manifest


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The scheduler's input for a cluster.

    Attributes:
        roles: The class of each role that the cluster can have, without claims.
        classes: Those of the tasks, in the order in which they are served: master, core, transient.
        tasks: Hosts that have no node: those without a pod, and pods without a node.
        factory: Builds their pods.
    """

    job: model.Job
    roles: Mapping[Role, model.TaskClass]
    classes: tuple[model.TaskClass, ...]
    tasks: tuple[model.Task, ...]
    factory: NodeFactory

    def submission(self, constants: koala.Config) -> Submission:
        """Return the cluster as the policies know it."""
        stores = constants.policy is koala.Policy.GGDP or Role.TRANSIENT not in self.roles
        counts = {task_class.id: 0 for task_class in self.roles.values()}
        for host in self.factory.hosts.values():
            counts[self.roles[_role(host)].id] += 1
        return Submission(
            job=self.job,
            classes=tuple(self.roles.values()),
            worker=self.roles[Role.CORE if stores else Role.TRANSIENT].id,
            tasks=counts,
            constants=constants,
        )


def of(pods: NodePods, wanted: Iterable[Wanted], nodes: Iterable[NodePod] = (), *, priority: int = 0) -> Nodes:
    """Return a cluster's nodes for the scheduler.

    `wanted` hosts shall have a pod and have none. Pods without a node must be submitted, too: they wait for a binding.

    Raises:
        ValueError: The daemons need more memory.
    """
    cluster = pods.cluster
    roles = {role: _class(pods, role) for role in _ROLES if cluster.spec.compute or role is not Role.TRANSIENT}
    unplaced = {pod.host: pod.uid for pod in nodes if pod.life is PodLife.UNPLACED and not pod.is_over}
    hosts = sorted({node.host for node in wanted} | unplaced.keys(), key=_order)
    classes = {host: _with_claim(cluster, roles[_role(host)], host) for host in hosts}
    tasks = tuple(
        model.Task(
            id=pods.task(host),
            task_class=classes[host].id,
            index=number_of(host),
            pod_uid=model.PodUid(unplaced[host]) if host in unplaced else None,
        )
        for host in hosts
    )
    return Nodes(
        job=_job(cluster, priority),
        roles=roles,
        classes=tuple({task_class.id: task_class for task_class in classes.values()}.values()),
        tasks=tasks,
        factory=NodeFactory(pods=pods, hosts={pods.task(host): host for host in hosts}),
    )


def submit(target: scheduler.Scheduler, nodes: Nodes) -> None:
    """Have nodes scheduled.

    The scheduler uses a name once, in case its owner has not seen that the pod ended. Hosts keep their names, and the
    API server has no two pods of a name: a host whose pod ended is submitted as new.
    """
    if target.submit(nodes.job, nodes.classes, nodes.tasks, nodes.factory):
        target.withdraw(nodes.job.id)
        target.submit(nodes.job, nodes.classes, nodes.tasks, nodes.factory)


def _job(cluster: Cluster, priority: int) -> model.Job:
    return model.Job(
        id=model.JobId(cluster.uid),
        queue=model.QueueName(cluster.queue),
        submitted_s=cluster.created_s,
        name=f"{cluster.namespace}/{cluster.name}",
        namespace=model.NamespaceName(cluster.namespace),
        priority=priority,
        priority_class=cluster.priority_class,
        weight=cluster.spec.weight,
    )


def _class(pods: NodePods, role: Role) -> model.TaskClass:
    class_fields = manifests.pod_class(pods.build(host_of(role, 0)), own_labels={LABEL_HOST})
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
    claim = f"{cluster.namespace}/{Names(cluster).claim(host)}"
    return dataclasses.replace(
        role_class,
        id=model.ClassId(f"{cluster.uid}/{host}"),
        constraints=dataclasses.replace(role_class.constraints, claims=(claim,)),
    )


def _role(host: str) -> Role:
    """Return the role of a host.

    Raises:
        ValueError: No host has this name.
    """
    role = role_of(host)
    if role is None:
        raise ValueError(f'"{host}" is not the name of a host of a cluster')
    return role


def _order(host: str) -> tuple[int, int]:
    return _ROLES.index(_role(host)), number_of(host)
