"""The objects of a cluster that are not pods or claims: Service, ConfigMap, NetworkPolicies. Pure."""

from collections.abc import Sequence
from typing import Final

from boathouse.resources import names
from boathouse.resources.mrcluster import names as cluster_names
from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame import manifests
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrcluster import ports
from boathouse.services.mrcluster.cluster import MRCLUSTERS, Cluster
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.settings.files import Rendered
from boathouse_task.contract import TaskType

APP: Final = "boathouse-hadoop"
_CLIENTS: Final = (*map(str, TaskType), Role.CLIENT.value, "driver")
"""Types of the pods that Boathouse creates for jobs; users cannot create pods with this label."""
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_POLICIES: Final = ("cluster", "clients")


def metadata(cluster: Cluster, name: str, *, owned: bool = True) -> Manifest:
    """Return the metadata of an object of a cluster.

    Args:
        cluster: The cluster.
        name: Name of the object.
        owned: Whether Kubernetes deletes it with the cluster.
    """
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": {
            **manifests.labels(APP, cluster),
            names.LABEL_JOB_UID: cluster.uid,
            names.LABEL_KIND: cluster_names.KIND,
        },
        **({"ownerReferences": [manifests.owner_reference(MRCLUSTERS, cluster)]} if owned else {}),
    }


def service(cluster: Cluster) -> Manifest:
    """Return the headless Service, which gives each host a name before its pod is ready: daemons need their own."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, Names(cluster).service),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.LABEL_JOB_UID: cluster.uid},
            "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in ports.BY_NAME.items()],
        },
    }


def config_map(cluster: Cluster, rendered: Rendered) -> Manifest:
    """Return the ConfigMap with the files; another digest is another ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(cluster, Names(cluster).config_map(rendered.digest)),
        "immutable": True,
        "data": dict(rendered.files),
    }


def network_policies(cluster: Cluster) -> Sequence[Manifest]:
    """Return the policies: the own pods reach all ports, clients those for clients. None opens the canary port.

    The operator reaches the control port: without it a fault of the network would look like an enforced policy.
    """
    if cluster.spec.network_policy == "None":
        return []
    first, last = ports.APPLICATION_MASTERS
    clients = [*({"port": port, "protocol": "TCP"} for port in ports.OF_CLIENTS)]
    clients.append({"port": first, "endPort": last, "protocol": "TCP"})
    itself = {"matchLabels": {names.LABEL_JOB_UID: cluster.uid}}
    rules: list[list[Manifest]] = [
        [{"from": [{"podSelector": itself}]}],
        [
            {"from": [{"podSelector": _clients(cluster)}], "ports": clients},
            {"from": [_operator(cluster)], "ports": [{"port": ports.CONTROL, "protocol": "TCP"}]},
        ],
    ]
    return [_network_policy(cluster, part, ingress) for part, ingress in zip(_POLICIES, rules, strict=True)]


def removed_policies(cluster: Cluster) -> Sequence[Manifest]:
    """Return the NetworkPolicies that a cluster with another `networkPolicy` had, and this one has not."""
    kept = {policy["metadata"]["name"] for policy in network_policies(cluster)}
    found = [_network_policy(cluster, part, []) for part in _POLICIES]
    return [policy for policy in found if policy["metadata"]["name"] not in kept]


def _clients(cluster: Cluster) -> Manifest:
    """Return the selector of pods of the cluster's namespace that may be clients; an empty one selects all."""
    if cluster.spec.network_policy == "Namespace":
        return {}
    return {"matchExpressions": [{"key": names.LABEL_TASK_TYPE, "operator": "In", "values": [*_CLIENTS]}]}


def _operator(cluster: Cluster) -> Manifest:
    """Return the peer that is the operator."""
    return {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: cluster.operator_namespace}},
        "podSelector": {"matchLabels": {names.APP_NAME: names.MANAGER, names.APP_COMPONENT: "operator"}},
    }


def _network_policy(cluster: Cluster, part: str, ingress: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(cluster, Names(cluster).network_policy(part)),
        "spec": {
            "podSelector": {"matchLabels": {names.LABEL_JOB_UID: cluster.uid}},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }
