"""Hadoop clusters, and jobs on them, that tests apply to a real API server."""

from __future__ import annotations

from typing import Any

from boathouse.resources import names
from boathouse.services.mrcluster.model import MRCLUSTERS
from boathouse.services.mrjob.model import MRJOBS


def mrcluster(name: str, namespace: str, *, cpu: str, volume: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return an MRCluster of a master and two core nodes of 1 GiB; fields of `core` and `transient` are added."""
    resources = {"cpu": cpu, "memory": "1Gi"}
    defaults = {
        "image": "hadoop:dev",
        "dataPolicy": "Delete",
        "master": {"resources": {"cpu": cpu, "memory": "1408Mi"}, "volume": volume},
        "core": {"count": 2, "resources": resources, "volume": volume, **spec.pop("core", {})},
        "transient": {"resources": resources, "scratch": "1Gi", **spec.pop("transient", {})},
    }
    return _object(MRCLUSTERS.kind, name, namespace, defaults | spec)


def mrjob_on(cluster: str, name: str, namespace: str, output: str = "/out") -> dict[str, Any]:
    """Return an MRJob that runs as a job of Hadoop Streaming on a cluster."""
    stage = {"command": ["cat"]}
    spec = {"clusterRef": {"name": cluster}, "input": ["/in"], "output": output, "mapper": stage}
    return _object(MRJOBS.kind, name, namespace, spec)


def _object(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
