"""Volumes for claims where the cluster makes none: folders of this machine, on which local nodes run, or of nodes."""

import contextlib
import dataclasses
import pathlib
import secrets
import tempfile
from collections.abc import Iterator
from typing import Any

from boathouse_e2e import shell
from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.local import state
from boathouse_e2e.spec import Cluster

LABEL = "tests.boathouse.dev/pool"
HOST = "kubernetes.io/hostname"
DEFAULT = "storageclass.kubernetes.io/is-default-class"


@contextlib.contextmanager
def pool(cluster: Cluster, *, volumes_per_node: int, size: str = "1Gi") -> Iterator[str | None]:
    """The name of a StorageClass with so many volumes on each node; None where claims of the default one get volumes.

    A volume is used once. Like those of local disks, they are tied to their nodes.
    """
    if _has_default_class(cluster):
        yield None
        return
    name = f"folders-{secrets.token_hex(2)}"
    nodes = [str(node["metadata"]["name"]) for node in cluster.workers()]
    with _folder(cluster) as folder:
        paths = {node: [folder / f"{node}-{n}" for n in range(volumes_per_node)] for node in nodes}
        for node, own in paths.items():
            _make(cluster, node, own)
        cluster.apply(_class(name), *(_volume(name, node, path, size) for node, own in paths.items() for path in own))
        yield name
        cluster.run("delete", "persistentvolumes", "-l", f"{LABEL}={name}", "--wait=false")
        cluster.run("delete", "storageclass", name)


@contextlib.contextmanager
def reserved(cluster: Cluster, namespace: str, claim: str, *, node: str | None = None) -> Iterator[None]:
    """Have a volume for a claim of the default StorageClass, also where there is no such class (on a node)."""
    if _has_default_class(cluster):
        yield
        return
    node = node or str(cluster.workers()[0]["metadata"]["name"])
    with _folder(cluster) as folder:
        path = folder / namespace
        _make(cluster, node, [path])
        volume = _volume("", node, path, "1Gi")
        volume["metadata"] = {"name": namespace}
        volume["spec"]["claimRef"] = {"namespace": namespace, "name": claim}
        cluster.apply(volume)
        yield
        cluster.run("delete", "persistentvolume", namespace, "--wait=false")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of nodes for a volume that many pods use at a time.

    Attributes:
        node: The only node that has it, one of kind; None if all nodes are of this machine.
    """

    cluster: Cluster
    node: str | None
    path: pathlib.Path

    def volume(self) -> dict[str, Any]:
        """Fields of a PersistentVolume."""
        return {"hostPath": {"path": str(self.path)}, **({"nodeAffinity": _on(self.node)} if self.node else {})}

    def write(self, name: str, data: bytes) -> None:
        """Write a file of it, whose folder is made."""
        self._sh(f'mkdir -p "$(dirname "{name}")" && cat >"{name}"', data.decode())

    def files(self, name: str) -> dict[str, bytes]:
        """Return the files of a folder in it."""
        names = self._sh(f'ls "{name}"').split()
        return {file_name: self._sh(f'cat "{name}/{file_name}"').encode() for file_name in names}

    def _sh(self, script: str, stdin: str = "") -> str:
        command = ("sh", "-ec", f'cd "{self.path}"; {script}')
        if self.node is None:
            return shell.run(*command, stdin=stdin)
        return KindProvider().run_on(self.cluster.name, self.node, *command, stdin=stdin)


@contextlib.contextmanager
def shared(cluster: Cluster) -> Iterator[Folder]:
    """Yield a folder that every user may write."""
    with _folder(cluster) as path:
        node = str(cluster.workers()[0]["metadata"]["name"]) if cluster.provider == state.KIND else None
        if node:
            KindProvider().run_on(cluster.name, node, "mkdir", "--parents", str(path))
        folder = Folder(cluster=cluster, node=node, path=path)
        folder._sh("chmod 777 .")
        yield folder


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
            "nodeAffinity": _on(node),
        },
    }


def _on(node: str) -> dict[str, Any]:
    here = {"key": HOST, "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
