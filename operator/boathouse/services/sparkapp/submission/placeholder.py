"""A pod that stands for another while it waits for nodes: an autoscaler sees what that needs. Pure.

It is never bound. It has what decides about nodes (requests, selectors, affinity, tolerations, claims, priority), the
image, which policies of the cluster may check, and nothing that runs. It is within Pod Security `restricted`.
"""

from __future__ import annotations

from typing import Any, Final

from boathouse.services.sparkapp.submission import pod_parts

_OF_SPARK: Final = ("spark-app-selector", "spark-role", "spark-exec-id")
"""Labels by which a driver knows its executors, and takes pods for these."""
_KEPT: Final = (
    "schedulerName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "priorityClassName",
)


def of(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the placeholder of a pod, without a name."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    kept = {field: spec[field] for field in _KEPT if field in spec}
    claims = [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": metadata["namespace"],
            "ownerReferences": metadata["ownerReferences"],
            "labels": {key: value for key, value in metadata["labels"].items() if key not in _OF_SPARK},
        },
        "spec": kept
        | {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "securityContext": pod_parts.pod_security(),
            "containers": [_container(each) for each in spec["containers"]],
            **({"volumes": claims} if claims else {}),
        },
    }


def _container(container: dict[str, Any]) -> dict[str, Any]:
    kept = {field: container[field] for field in ("name", "image", "resources")}
    return {**kept, "command": ["true"], "securityContext": pod_parts.container_security()}
