"""What the pods of all roles have in common. Pure."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from boathouse.resources import names
from boathouse.resources.mrcluster.names import ANNOTATION_SETTINGS, LABEL_HOST, Role
from boathouse.services.frame import manifests
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrcluster import objects
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.settings.files import USER_ID, Rendered

_GRACE_S: Final = 60
_ZONE: Final = "topology.kubernetes.io/zone"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PATIENCE_S: Final = {Role.MASTER: 300, Role.CORE: 300, Role.TRANSIENT: 60}
"""How long a pod stays on a node that does not respond. Core nodes have data there."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Settings of the operator for the pods of clusters.

    Attributes:
        progress_url: URL of the progress endpoint for pods.
        agent_image: The task image.
        image_pull_secrets: Of the task image.
    """

    progress_url: str
    agent_image: str
    agent_image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()


def build(
    cluster: Cluster, host: str, role: Role, rendered: Rendered, containers: list[Manifest], volumes: list[Manifest]
) -> Manifest:
    """Return a pod without a node, with the fields of the spec for pods. Its containers are those with Hadoop."""
    manifest = manifests.pod(
        _metadata(cluster, host, role, rendered),
        manifests.template(cluster.spec),
        user_id=USER_ID,
        containers=containers,
        volumes=volumes,
        tolerations=cluster.spec.tolerations or (),
        patience_s=_PATIENCE_S[role],
        node_selector=cluster.spec.node_selector or {},
        image_pull_secrets=cluster.defaults.image_pull_secrets,
        more={
            "restartPolicy": "Always",
            "hostname": host,
            "subdomain": Names(cluster).service,
            "terminationGracePeriodSeconds": _GRACE_S,
        },
        is_protected=role is not Role.TRANSIENT,
    )
    spec = manifest["spec"]
    spec["securityContext"]["fsGroupChangePolicy"] = "OnRootMismatch"
    if role is Role.CORE:
        spec["affinity"] = _apart(spec.get("affinity", {}), cluster)
    if cluster.spec.zones:
        spec["affinity"] = _in_zones(spec.get("affinity", {}), cluster.spec.zones)
    return manifest


def _metadata(cluster: Cluster, host: str, role: Role, rendered: Rendered) -> Manifest:
    metadata = objects.metadata(cluster, Names(cluster).pod(host))
    metadata["labels"] |= {
        names.APP_COMPONENT: role.value,
        names.LABEL_QUEUE: cluster.queue,
        names.LABEL_TASK_TYPE: role.value,
        LABEL_HOST: host,
        **({names.LABEL_APART: cluster.uid} if role is Role.CORE else {}),
    }
    metadata["annotations"] = {ANNOTATION_SETTINGS: rendered.digest}
    return metadata


def _apart(affinity: Manifest, cluster: Cluster) -> Manifest:
    """Return the affinity with what the label `apart` means to Boathouse, in words that cluster autoscalers know."""
    anti = affinity.get("podAntiAffinity", {})
    selector = {"matchLabels": {names.LABEL_APART: cluster.uid}}
    term = {"labelSelector": selector, "topologyKey": names.HOSTNAME}
    return {**affinity, "podAntiAffinity": {**anti, _REQUIRED: [*anti.get(_REQUIRED, ()), term]}}


def _in_zones(affinity: Manifest, zones: Sequence[str]) -> Manifest:
    """Return the affinity with the zones required in each of its terms, of which a node must match one."""
    node = affinity.get("nodeAffinity", {})
    terms = node.get(_REQUIRED, {}).get("nodeSelectorTerms", [{}])
    zone = {"key": _ZONE, "operator": "In", "values": sorted(zones)}
    terms = [{**term, "matchExpressions": [*term.get("matchExpressions", ()), zone]} for term in terms]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": terms}}}
