"""Fake nodes for scale, kept alive by KWOK; the same on every provider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse_e2e.spec import ComponentStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from boathouse_e2e.spec import ClusterSpec

STAGES = Path(__file__).parent / "local" / "kwok-stages.yaml"
RESIZE_STAGE = STAGES.with_name("kwok-resize.yaml")
RESIZE_ANNOTATION = "kwok.boathouse.dev/resize"
BY_HAND = "by-hand"
"""Value of `RESIZE_ANNOTATION` on pods whose resizes `model_kubelet` actuates."""
ANNOTATION = "kwok.x-k8s.io/node"
MAX_PODS = 1000


def name_of(index: int) -> str:
    """Return the name of fake node `index`."""
    return f"kwok-{index}"


def arguments(spec: ClusterSpec, kubeconfig: Path, *, network: str, lease_duration_s: int) -> tuple[str, ...]:
    """KWOK's arguments: it keeps the nodes that carry its annotation, and no others."""
    stages = (STAGES, RESIZE_STAGE) if spec.kwok_resizes else (STAGES,)
    return (
        f"--kubeconfig={kubeconfig}",
        *(f"--config={path}" for path in stages),
        f"--cidr={network}",
        "--node-ip=10.255.254.1",
        f"--manage-nodes-with-annotation-selector={ANNOTATION}=fake",
        f"--node-lease-duration-seconds={lease_duration_s}",
    )


def node(spec: ClusterSpec, index: int) -> dict[str, Any]:
    """Return a fake node. If there are real nodes too, it has a taint, so that only pods that tolerate it run there."""
    name, rack = name_of(index), f"rack-{index % spec.racks}"
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/role": "agent",
        "topology.kubernetes.io/zone": "zone-0",
        "boathouse.dev/rack": rack,
    }
    resources = {
        "cpu": str(spec.kwok_node_cpu),
        "memory": f"{spec.kwok_node_memory_mib}Mi",
        "pods": str(MAX_PODS),
        "ephemeral-storage": "1Ti",
    }
    taints = [{"key": ANNOTATION, "value": "fake", "effect": "NoSchedule"}] if spec.nodes else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {ANNOTATION: "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"taints": taints},
        "status": {"capacity": resources, "allocatable": resources},
    }


def is_ready(item: Mapping[str, Any]) -> bool:
    """Return whether a node is Ready."""
    conditions = item["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def node_status(nodes: Iterable[Mapping[str, Any]]) -> list[ComponentStatus]:
    """Return whether each real node is ready, and how many fake ones are."""
    nodes = list(nodes)
    fakes = [item for item in nodes if ANNOTATION in item["metadata"].get("annotations", {})]
    parts = [
        ComponentStatus(name=f"node {item['metadata']['name']}", state="Ready" if is_ready(item) else "NotReady")
        for item in nodes
        if item not in fakes
    ]
    if fakes:
        ready = sum(map(is_ready, fakes))
        parts.append(ComponentStatus(name="fake nodes", state=f"{ready} of {len(fakes)} Ready"))
    return parts
