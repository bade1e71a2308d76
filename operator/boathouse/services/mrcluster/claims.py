"""The PersistentVolumeClaims of the master and of core nodes, and whether their volumes can be mounted. Pure."""

from collections.abc import Iterable
from typing import Any

from boathouse.resources import quantity
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.nodes import Volume
from boathouse.scheduling.volumes import rules
from boathouse.services.mrcluster import naming, objects
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.planning.observation import ClaimFacts
from boathouse_policies import model


def volume(cluster: Cluster, host: str) -> Volume | None:
    """Return the volume of a host that keeps data; None for a transient node."""
    match naming.role_of(host):
        case Role.MASTER:
            return cluster.spec.master.volume
        case Role.CORE:
            return cluster.spec.core.volume
        case _:
            return None


def has_claim(cluster: Cluster, host: str) -> bool:
    """Return whether a host has a claim: all with data, but those with an emptyDir."""
    found = volume(cluster, host)
    return found is not None and not found.empty_dir


def build(cluster: Cluster, host: str) -> dict[str, Any]:
    """Return the manifest of a host's claim; with `dataPolicy: Retain` it outlives the cluster.

    Raises:
        ValueError: The host has none.
    """
    found = volume(cluster, host)
    if found is None or found.empty_dir:
        raise ValueError(f"{host} of the cluster {cluster.name} has no claim")
    owned = cluster.spec.data_policy == "Delete"
    metadata = objects.metadata(cluster, naming.Names(cluster).claim(host), owned=owned)
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": quantity.format_bytes(quantity.units(found.size))}},
    }
    if found.storage_class_name is not None:
        spec["storageClassName"] = found.storage_class_name
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def facts(objects: rules.Storage, nodes: Iterable[model.Node], claim: str) -> ClaimFacts | None:
    """Return the facts of a claim (namespace/name); None if it does not exist.

    A volume is tied if its node affinity names nodes, as that of a local volume does.
    """
    found = objects.claims.get(claim)
    if found is None:
        return None
    volume = objects.volumes.get(found.spec.volume_name) if found.is_bound else None
    affinity = volume.spec.node_affinity if volume else None
    if volume is None or affinity is None or affinity.required is None:
        return ClaimFacts(is_bound=found.is_bound)
    return ClaimFacts(is_bound=True, is_tied=True, node_exists=any(rules.reaches(volume, node) for node in nodes))
