"""The pods of a cluster's nodes, built from its spec, its settings and the operator's. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from boathouse.cluster import catalogue, wire
from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.cluster import MRCLUSTERS, Cluster
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.pods import master_pod, worker_pod
from boathouse.services.mrcluster.pods.pod import PodSettings
from boathouse.services.mrcluster.settings.files import Rendered
from boathouse_policies import model


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
        match naming.role_of(host):
            case Role.MASTER:
                return master_pod.build(self.cluster, self.rendered, self.settings, may_format=self.may_format)
            case Role.CORE | Role.TRANSIENT as role:
                return worker_pod.build(self.cluster, host, role, self.rendered)
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
