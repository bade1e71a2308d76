"""Mark the leader's pod, because the progress endpoint's Service selects it."""

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.resources import names

_SYSTEM = "kube-system"
_LABELLED = f"{names.LABEL_LEADER}=true"


async def unmark(api: client.ApiClient, namespace: str, pod: str) -> None:
    """Remove the leader label from this pod at the start: a previous container of the pod may have set it."""
    try:
        await _label(api, namespace, pod, None)
    except errors.NotFound:  # started outside a pod
        return


async def mark(api: client.ApiClient, namespace: str, pod: str) -> None:
    """Label this pod as the leader, and remove the label from all others: a paused leader cannot do it itself."""
    failpoints.hit("before-leader.label")
    for other in (await api.list(catalogue.PODS, namespace, labels=_LABELLED)).items:
        if other.metadata.name != pod:
            await unmark(api, namespace, other.metadata.name)
    try:
        await _label(api, namespace, pod, "true")
    except errors.NotFound:
        return
    failpoints.hit("after-leader.label")


async def cluster_id(api: client.ApiClient) -> str:
    """Return the cluster's identity, the UID of its namespace kube-system, or an empty text."""
    try:
        return (await api.get(catalogue.NAMESPACES, _SYSTEM)).metadata.uid
    except errors.NotFound:
        return ""


async def _label(api: client.ApiClient, namespace: str, pod: str, value: str | None) -> None:
    await api.patch(catalogue.PODS, pod, {"metadata": {"labels": {names.LABEL_LEADER: value}}}, namespace)
