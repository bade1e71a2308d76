"""Manifests in one line each."""

from __future__ import annotations

import base64
import json
from typing import Any

FOR_EVER_S = 4_000_000_000


def pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str = "100m",
    memory: str = "64Mi",
    limits: dict[str, str] | None = None,
    node: str = "",
    phase: str = "Pending",
    scheduler: str = "boathouse",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod with one container `task`; further keywords go into its spec."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    metadata |= {k: v for k, v in {"labels": labels, "annotations": annotations}.items() if v}
    if owner:
        metadata["ownerReferences"] = [owner]
    resources: dict[str, Any] = {"requests": {"cpu": cpu, "memory": memory}}
    if limits:
        resources["limits"] = limits
    container = {"name": "task", "image": "busybox", "resources": resources}
    own_spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [container], **spec}
    if node:
        own_spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": own_spec, "status": {"phase": phase}}


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    ready: bool = True,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
    **extended: str,
) -> dict[str, Any]:
    """Return a node; further keywords are more resources (`**{"example.com/gpu": "1"}`)."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **extended}
    spec: dict[str, Any] = {}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    status = {
        "capacity": room,
        "allocatable": dict(room),
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        "nodeInfo": {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "v1.36.3"},
    }
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def config_map(name: str, *, namespace: str = "default", **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def lease(name: str = "boathouse", *, namespace: str = "boathouse-system", **spec: Any) -> dict[str, Any]:
    """Return a Lease."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def token(manifest: dict[str, Any], audience: str, *, signature: str = "genuine", **claims: Any) -> str:
    """Return a token projected into that pod; only the fake API server knows which signature is right."""
    metadata = manifest["metadata"]
    said = {
        "iss": "https://kubernetes.default.svc.cluster.local",
        "aud": [audience],
        "exp": FOR_EVER_S,
        "kubernetes.io": {
            "namespace": metadata["namespace"],
            "pod": {"name": metadata["name"], "uid": metadata["uid"]},
            "serviceaccount": {"name": "default", "uid": "uid-of-the-account"},
        },
    }
    parts = ({"alg": "RS256", "kid": "k"}, said | claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts]
    return ".".join([*encoded, signature])


def token_user(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what a TokenReview says of the token projected into that pod."""
    metadata = manifest["metadata"]
    return {
        "username": f"system:serviceaccount:{metadata['namespace']}:default",
        "uid": "uid-of-the-account",
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "extra": {
            "authentication.kubernetes.io/pod-name": [metadata["name"]],
            "authentication.kubernetes.io/pod-uid": [metadata["uid"]],
        },
    }
