"""Volumes for claims where the cluster has no provisioner: folders of this machine, on which the local nodes run."""

import contextlib
import pathlib
import secrets
import tempfile
from collections.abc import Iterator
from typing import Any

from boathouse_e2e.spec import Cluster

LABEL = "tests.boathouse.dev/pool"
HOST = "kubernetes.io/hostname"


@contextlib.contextmanager
def pool(cluster: Cluster, *, each: int, size: str = "1Gi") -> Iterator[str | None]:
    """The name of a StorageClass with so many volumes on each node; None, the default one, on other providers.

    A volume is used once. Like those of local disks, they are tied to their nodes.
    """
    if cluster.provider != "local":
        yield None
        return
    name = f"folders-{secrets.token_hex(2)}"
    nodes = [str(node["metadata"]["name"]) for node in cluster.get("nodes")["items"]]
    # Not of pytest, whose folders are closed to others. What pods still write at the end stays.
    with tempfile.TemporaryDirectory(prefix="boathouse-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        pathlib.Path(folder).chmod(0o711)
        volumes = [
            _volume(name, node, pathlib.Path(folder) / f"{node}-{n}", size) for node in nodes for n in range(each)
        ]
        cluster.apply(_class(name), *volumes)
        yield name
        cluster.run("delete", "persistentvolumes", "-l", f"{LABEL}={name}", "--wait=false")
        cluster.run("delete", "storageclass", name)


def _class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(name: str, node: str, folder: pathlib.Path, size: str) -> dict[str, Any]:
    folder.mkdir()
    here = {"key": HOST, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{name}-{folder.name}", "labels": {LABEL: name}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": str(folder)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
