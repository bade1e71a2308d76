"""A pod that stands for another while it waits for nodes: an autoscaler sees what that needs. Pure.

It is never bound. It has what decides about nodes (requests, selectors, affinity, tolerations, claims, priority), the
image and the user, which policies of the cluster may check, and nothing that runs. It is within Pod Security
`restricted`, because the pod for which it stands is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from boathouse.services.frame.manifests import Manifest

_OF_SPARK: Final = ("spark-app-selector", "spark-role", "spark-exec-id")
"""Labels by which a driver knows its executors, and takes pods for these."""
_KEPT: Final = frozenset(
    {
        "schedulerName",
        "nodeSelector",
        "affinity",
        "tolerations",
        "priorityClassName",
        "securityContext",
        "enableServiceLinks",
        "restartPolicy",
    }
)


def of(manifest: Manifest) -> Manifest:
    """Return the placeholder of a pod, without a name."""
    metadata, spec = manifest["metadata"], manifest["spec"]
    claims = [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume]
    return {
        **manifest,
        "metadata": {
            "namespace": metadata["namespace"],
            "ownerReferences": metadata["ownerReferences"],
            "labels": {key: value for key, value in metadata["labels"].items() if key not in _OF_SPARK},
        },
        "spec": {
            **{field: value for field, value in spec.items() if field in _KEPT},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [_container(each) for each in spec["containers"]],
            **({"volumes": claims} if claims else {}),
        },
    }


def _container(container: Manifest) -> Manifest:
    kept = {field: container[field] for field in ("name", "image", "resources", "securityContext")}
    return {**kept, "command": ["true"]}
