"""The objects of a cluster that its pods need, and their creation: Service, settings, claims, NetworkPolicies.

An object of another owner that has a name of the cluster's, or a write that the API server refuses, holds the pods that
need the object, and no others.
"""

from collections.abc import Awaitable, Collection, Iterable, Sequence
from typing import Final

from boathouse.cluster import catalogue, wire
from boathouse.resources import names, quantity
from boathouse.resources.mrcluster.names import KIND, Reason, Role
from boathouse.resources.mrcluster.nodes import Volume
from boathouse.scheduling.volumes import rules
from boathouse.services.frame import manifests
from boathouse.services.frame.pod_life import Problem
from boathouse.services.frame.writes import Writes, problem_of
from boathouse.services.mrcluster import daemons
from boathouse.services.mrcluster.files import Rendered
from boathouse.services.mrcluster.model import MRCLUSTERS, Cluster, known_role
from boathouse_policies import model
from boathouse_task.contract import TaskType

APP: Final = "boathouse-hadoop"
_CLIENTS: Final = (*map(str, TaskType), Role.CLIENT.value, "driver")
"""Types of the pods that Boathouse creates for jobs; users cannot create pods with this label."""
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_POLICIES: Final = ("cluster", "clients")
_CONFIG_MAP: Final = "config-map"
_NETWORK_POLICY: Final = "network-policy"


def metadata(cluster: Cluster, name: str, *, owned: bool = True) -> manifests.Manifest:
    """Return the metadata of an object of a cluster. Kubernetes deletes an owned object with the cluster."""
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": {**manifests.labels(APP, cluster), names.LABEL_JOB_UID: cluster.uid, names.LABEL_KIND: KIND},
        **({"ownerReferences": [manifests.owner_reference(MRCLUSTERS, cluster)]} if owned else {}),
    }


def service(cluster: Cluster) -> manifests.Manifest:
    """Return the headless Service, which gives each host a name before its pod is ready: daemons need their own."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(cluster, cluster.service),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.LABEL_JOB_UID: cluster.uid},
            "ports": [{"name": name, "port": port, "protocol": "TCP"} for name, port in daemons.PORTS.items()],
        },
    }


def config_map(cluster: Cluster, rendered: Rendered) -> manifests.Manifest:
    """Return the ConfigMap with the files; another digest is another ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(cluster, cluster.config_map(rendered.digest)),
        "immutable": True,
        "data": dict(rendered.files),
    }


def network_policies(cluster: Cluster) -> Sequence[manifests.Manifest]:
    """Return the policies: the own pods reach all ports, clients those for clients. None opens the canary port.

    The operator reaches the control port: without it a fault of the network would look like an enforced policy.
    """
    if cluster.spec.network_policy == "None":
        return []
    first, last = daemons.APPLICATION_MASTER_PORTS
    ports: list[manifests.Manifest] = [{"port": port, "protocol": "TCP"} for port in daemons.CLIENT_PORTS]
    ports.append({"port": first, "endPort": last, "protocol": "TCP"})
    by_type = {"matchExpressions": [{"key": names.LABEL_TASK_TYPE, "operator": "In", "values": [*_CLIENTS]}]}
    clients = {} if cluster.spec.network_policy == "Namespace" else by_type  # an empty selector selects all pods
    operator = {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: cluster.config.namespace}},
        "podSelector": {"matchLabels": {names.APP_NAME: names.MANAGER, names.APP_COMPONENT: "operator"}},
    }
    ingress: dict[str, list[manifests.Manifest]] = {
        "cluster": [{"from": [{"podSelector": {"matchLabels": {names.LABEL_JOB_UID: cluster.uid}}}]}],
        "clients": [
            {"from": [{"podSelector": clients}], "ports": ports},
            {"from": [operator], "ports": [{"port": daemons.CONTROL_PORT, "protocol": "TCP"}]},
        ],
    }
    return [_network_policy(cluster, part, ingress[part]) for part in _POLICIES]


def _network_policy(cluster: Cluster, part: str, ingress: list[manifests.Manifest]) -> manifests.Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(cluster, cluster.named(part)),
        "spec": {
            "podSelector": {"matchLabels": {names.LABEL_JOB_UID: cluster.uid}},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }


def volume(cluster: Cluster, host: str) -> Volume | None:
    """Return the volume of a host that keeps data; None for a transient node."""
    spec = cluster.spec
    return {Role.MASTER: spec.master.volume, Role.CORE: spec.core.volume}.get(known_role(host))


def has_claim(cluster: Cluster, host: str) -> bool:
    """Return whether a host has a claim: all with data, but those with an emptyDir."""
    data_volume = volume(cluster, host)
    return data_volume is not None and not data_volume.empty_dir


def claim(cluster: Cluster, host: str) -> manifests.Manifest:
    """Return the claim of a host that has one; with `dataPolicy: Retain` it outlives the cluster."""
    data_volume = volume(cluster, host)
    if data_volume is None or data_volume.empty_dir:
        raise ValueError(f"{host} of the cluster {cluster.name} has no claim")
    size, storage_class = quantity.format_bytes(quantity.units(data_volume.size)), data_volume.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(cluster, cluster.named(host), owned=cluster.spec.data_policy == "Delete"),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **({} if storage_class is None else {"storageClassName": storage_class}),
        },
    }


def is_lost(storage: rules.Storage, nodes: Iterable[model.Node], claim: str) -> bool:
    """Return whether no pod can mount a claim (namespace/name): its volume is tied to nodes that do not exist."""
    claim_view = storage.claims.get(claim)
    volume = storage.volumes.get(claim_view.spec.volume_name) if claim_view and claim_view.is_bound else None
    affinity = volume.spec.node_affinity if volume else None
    if volume is None or affinity is None or affinity.required is None:
        return False
    return not any(rules.reaches(volume, node) for node in nodes)


async def ensure_settings(cluster: Cluster, rendered: Rendered, writes: Writes) -> Problem | None:
    """Create the ConfigMap of settings; returns why pods with them must not be created yet, or None."""
    return await _checked(writes.ensure(catalogue.CONFIG_MAPS, config_map(cluster, rendered), _CONFIG_MAP))


async def ensure_claim(cluster: Cluster, host: str, writes: Writes) -> Problem | None:
    """Create the claim of a host; returns why its pod must not be created yet, or None."""
    return await _checked(writes.ensure(catalogue.PERSISTENT_VOLUME_CLAIMS, claim(cluster, host), "claim"))


async def apply_network(cluster: Cluster, writes: Writes) -> Problem | None:
    """Make the NetworkPolicies those of the spec, and create the Service; returns why they are not, or None."""
    policies = network_policies(cluster)
    for policy in policies:
        problem = await _checked(writes.apply(catalogue.NETWORK_POLICIES, policy, _NETWORK_POLICY))
        if problem is not None:
            return problem
    for part in () if policies else _POLICIES:  # of a cluster with another `networkPolicy`
        await writes.remove(catalogue.NETWORK_POLICIES, _network_policy(cluster, part, []), _NETWORK_POLICY)
    return await _checked(writes.ensure(catalogue.SERVICES, service(cluster), "service"))


async def remove_settings(cluster: Cluster, digests: Collection[str], writes: Writes) -> None:
    """Delete the ConfigMaps of settings that no pod has any more."""
    for digest in sorted(digests):
        config_map = {"metadata": metadata(cluster, cluster.config_map(digest))}
        await writes.remove(catalogue.CONFIG_MAPS, config_map, _CONFIG_MAP)


async def _checked(write: Awaitable[wire.Manifest | None]) -> Problem | None:
    return await problem_of(write, refused=Reason.WRITE_REFUSED, taken=Reason.NAME_TAKEN, noun="cluster")
