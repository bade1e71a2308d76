"""Annotations by which a pod asks autoscalers to leave its node alone while it runs. Pure.

For pods whose end costs more than an idle node: drivers, tasks, masters and core nodes. An autoscaler may remove the
node of an executor or of a transient node: these are replaced. What the author of an object says in the annotations of
its pods wins.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

PROTECTED: Final[Mapping[str, str]] = MappingProxyType(
    {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
)


def protect(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add the annotations to a pod's manifest, unless it has others of the name; return it."""
    metadata = manifest["metadata"]
    metadata["annotations"] = {**PROTECTED, **(metadata.get("annotations") or {})}
    return manifest
