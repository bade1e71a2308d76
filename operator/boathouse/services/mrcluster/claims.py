"""The PersistentVolumeClaims of the master and of core nodes. Pure."""

from typing import Any

from boathouse.resources import quantity
from boathouse.resources.mrcluster.names import Role
from boathouse.resources.mrcluster.nodes import Volume
from boathouse.services.mrcluster import naming, objects
from boathouse.services.mrcluster.cluster import Cluster


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
