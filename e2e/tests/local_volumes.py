"""Volumes for claims where the cluster makes none: folders of this machine, on which local nodes run, or of nodes."""

import contextlib
import pathlib
import secrets
import tempfile
from collections.abc import Iterator
from typing import Any

from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.local import state
from boathouse_e2e.spec import Cluster

LABEL = "tests.boathouse.dev/pool"
HOST = "kubernetes.io/hostname"
DEFAULT = "storageclass.kubernetes.io/is-default-class"


@contextlib.contextmanager
def pool(cluster: Cluster, *, each: int, size: str = "1Gi") -> Iterator[str | None]:
    """The name of a StorageClass with so many volumes on each node; None where claims of the default one get volumes.

    A volume is used once. Like those of local disks, they are tied to their nodes.
    """
    if _has_default_class(cluster):
        yield None
        return
    name = f"folders-{secrets.token_hex(2)}"
    nodes = [str(node["metadata"]["name"]) for node in cluster.workers()]
    with _folder(cluster) as folder:
        paths = {node: [folder / f"{node}-{n}" for n in range(each)] for node in nodes}
        for node, own in paths.items():
            _make(cluster, node, own)
        cluster.apply(_class(name), *(_volume(name, node, path, size) for node, own in paths.items() for path in own))
        yield name
        cluster.run("delete", "persistentvolumes", "-l", f"{LABEL}={name}", "--wait=false")
        cluster.run("delete", "storageclass", name)


def _has_default_class(cluster: Cluster) -> bool:
    classes = [item["metadata"].get("annotations", {}) for item in cluster.get("storageclasses")["items"]]
    return any(annotations.get(DEFAULT) == "true" for annotations in classes)


@contextlib.contextmanager
def _folder(cluster: Cluster) -> Iterator[pathlib.Path]:
    """A folder for volumes: of this machine, or one that ends with the nodes of kind."""
    if cluster.provider == state.KIND:
        yield pathlib.Path("/var/local/volumes") / secrets.token_hex(2)
        return
    # Not of pytest, whose folders are closed to others. What pods still write at the end stays.
    with tempfile.TemporaryDirectory(prefix="boathouse-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        pathlib.Path(folder).chmod(0o711)
        yield pathlib.Path(folder)


def _make(cluster: Cluster, node: str, folders: list[pathlib.Path]) -> None:
    if cluster.provider == state.KIND:
        KindProvider().run_on(cluster.name, node, "mkdir", "-p", *map(str, folders))
        return
    for folder in folders:
        folder.mkdir()


def _class(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(name: str, node: str, folder: pathlib.Path, size: str) -> dict[str, Any]:
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
