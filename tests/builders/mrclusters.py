"""MRClusters as the API server has them, their models, their nodes, and what the directory lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boathouse.resources.config import HadoopDefaults, OperatorConfig, TaskDefaults
from boathouse.services.frame.kind import ObjectUid, Refusal
from boathouse.services.hadoop import ClusterFacts
from boathouse.services.mrcluster import files, model, pods
from boathouse_policies.model import NodeName
from boathouse_task.cluster_contract import ApplicationFigures

if TYPE_CHECKING:
    from collections.abc import Mapping

FULL = {
    "queue": "default",
    "transient": {"maximum": 4, "scratch": "20Gi"},
    "zones": ["b", "a"],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "batch", "operator": "Exists", "effect": "NoSchedule"}],
    "env": [{"name": "TZ", "value": "UTC"}],
    "envFrom": [{"secretRef": {"name": "s3"}}],
    "imagePullSecrets": [{"name": "mine"}],
    "podTemplate": {"priorityClassName": "low", "metadata": {"labels": {"team": "blue"}}},
}
"""A spec with every field that pods get."""
UID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
CONFIG = OperatorConfig(task=TaskDefaults(image="boathouse-task:1", image_pull_secrets=["tasks"]))
DEFAULTS = HadoopDefaults(image="localhost/hadoop:test")


def mrcluster(
    *,
    name: str = "etl",
    uid: str = UID,
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return an MRCluster with the CRD's defaults as the API server has it."""
    own = {"name": name, "namespace": "demo", "uid": uid, "generation": 1}
    own |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": own | (metadata or {}), "spec": spec, "status": status or {}}


def cluster(defaults: HadoopDefaults = DEFAULTS, **fields: Any) -> model.Cluster:
    """Return the model of an MRCluster with these fields."""
    found = model.from_resource(mrcluster(**fields), CONFIG.model_copy(update={"hadoop": defaults}))
    assert not isinstance(found, Refusal), found
    return found


def cluster_refusal(defaults: HadoopDefaults = DEFAULTS, **fields: Any) -> Refusal:
    """Return why an MRCluster with these fields is invalid."""
    found = model.from_resource(mrcluster(**fields), CONFIG.model_copy(update={"hadoop": defaults}))
    assert isinstance(found, Refusal)
    return found


def node_manifest(
    host: str = "master", *, may_format: bool = False, defaults: HadoopDefaults = DEFAULTS, **fields: Any
) -> dict[str, Any]:
    """Return the pod that the operator creates for a host of a cluster with these fields."""
    found = cluster(defaults=defaults, **fields)
    return pods.of(found, host, files.render(found), may_format=may_format)


def application(number: int = 1, state: str = "RUNNING", **figures: Any) -> ApplicationFigures:
    """Return the figures of an application of YARN."""
    return ApplicationFigures(id=f"application_1_{number}", state=state, **figures)


def cluster_facts(
    *, uid: str = "u-1", name: str = "lake", namespace: str = "a", hosts: Mapping[str, str] | None = None
) -> ClusterFacts:
    """Return a ready cluster of the directory whose hosts are on these nodes."""
    return ClusterFacts(
        uid=ObjectUid(uid),
        namespace=namespace,
        name=name,
        queue="default",
        phase="Ready",
        is_ready=True,
        has_compute=True,
        domain=f"{name}-nodes.{namespace}.svc",
        image="boathouse-hadoop:test",
        classpath="/opt/hadoop/lib/*",
        java_home="/opt/java",
        settings=f"{name}-conf-12345678",
        hosts={host: NodeName(node) for host, node in (hosts or {}).items()},
    )
