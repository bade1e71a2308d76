"""The operator's own objects: its ConfigMaps, and the label by which the endpoint's Service selects the leader."""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors, wire
from boathouse.resources import names

CONFIG_MAPS: Final = catalogue.CONFIG_MAPS.untyped()
_SYSTEM = "kube-system"
_LABELLED = f"{names.LABEL_LEADER}=true"


def config_map(name: str, namespace: str, content: Mapping[str, Any]) -> wire.Manifest:
    """Return a ConfigMap with its `data` or `binaryData`."""
    labels = {names.APP_MANAGED_BY: names.MANAGER, names.APP_PART_OF: "boathouse"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


async def write_config_map(api: client.ApiClient, name: str, namespace: str, content: Mapping[str, Any]) -> None:
    """Replace a ConfigMap, or create it; raises `errors.ClusterError` if the write failed."""
    manifest = config_map(name, namespace, content)
    try:
        await api.replace(CONFIG_MAPS, name, manifest, namespace)
    except errors.NotFound:
        await api.create(CONFIG_MAPS, manifest, namespace)


async def unmark_leader(api: client.ApiClient, namespace: str, pod: str) -> None:
    """Remove the leader label from this pod at the start: a previous container of the pod may have set it."""
    await _label(api, namespace, pod, None)


async def mark_leader(api: client.ApiClient, namespace: str, pod: str) -> None:
    """Label this pod as the leader, and remove the label from all others: a paused leader cannot do it itself."""
    with failpoints.around("leader.label"):
        for other in (await api.list(catalogue.PODS, namespace, labels=_LABELLED)).items:
            if other.metadata.name != pod:
                await unmark_leader(api, namespace, other.metadata.name)
        await _label(api, namespace, pod, "true")


async def cluster_id(api: client.ApiClient) -> str:
    """Return the cluster's identity, the UID of its namespace kube-system, or an empty text."""
    try:
        return (await api.get(catalogue.NAMESPACES, _SYSTEM)).metadata.uid
    except errors.NotFound:
        return ""


async def _label(api: client.ApiClient, namespace: str, pod: str, value: str | None) -> None:
    with contextlib.suppress(errors.NotFound):  # started outside a pod, or the other pod is gone
        await api.patch(catalogue.PODS, pod, {"metadata": {"labels": {names.LABEL_LEADER: value}}}, namespace)
