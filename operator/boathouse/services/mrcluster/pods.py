"""The pods of a cluster: how they are built, and read as the planner sees them. Pure.

The master's pod has NameNode, ResourceManager, JobHistoryServer and the agent; that of a core node has DataNode and
NodeManager, that of a transient node a NodeManager.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from boathouse.cluster import wire
from boathouse.resources import names, quantity
from boathouse.resources.mrcluster.names import ANNOTATION_SETTINGS, LABEL_HOST, Reason, Role
from boathouse.resources.names import LABEL_TASK_TYPE
from boathouse.scheduling.pods import facts
from boathouse.services.frame import manifests, pod_life
from boathouse.services.frame.manifests import Manifest
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.frame.status_codec import printable
from boathouse.services.mrcluster import containers, daemons, model, objects, sizes
from boathouse.services.mrcluster.containers import REFRESH
from boathouse.services.mrcluster.files import USER_ID, Rendered
from boathouse.services.mrcluster.model import Cluster, Names
from boathouse.services.mrcluster.planning.observation import NodePod
from boathouse_task import cluster_contract, contract

_GRACE_S: Final = 60
_ZONE: Final = "topology.kubernetes.io/zone"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PATIENCE_S: Final = {Role.MASTER: 300, Role.CORE: 300, Role.TRANSIENT: 60}
"""How long a pod stays on a node that does not respond. Core nodes have data there."""
AGENT: Final = "agent"
_AGENT_LIMIT: Final = "96Mi"
_SMALL_SHARE: Final = 1
_DAEMON_SHARE: Final = 8
_REFRESH_BYTES: Final = 1024**2
_LOCAL: Final = "local"
_CPU_WEIGHTS: Final = {daemons.DATA_NODE: 1, daemons.NODE_MANAGER: 4}
CONTAINERS: Final = frozenset({*(daemon.container for daemon in daemons.ALL), REFRESH, AGENT})
"""The containers of all roles."""
REFUSED: Final = 78
"""With what `start.sh` ends if the NameNode must not use its volume."""
_REFUSAL: Final = re.compile(
    rf"(?P<reason>{Reason.NAME_VOLUME_EMPTY}|{Reason.FOREIGN_CLUSTER}): (?P<message>.*)", re.DOTALL
)
CRASHING: Final = "CrashLoopBackOff"
_MAX_LOG: Final = 400


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Settings of the operator for the pods of clusters: the progress endpoint, the task image and its pull secrets."""

    progress_url: str
    agent_image: str
    agent_image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()


def _pod(
    cluster: Cluster, host: str, role: Role, rendered: Rendered, containers: list[Manifest], volumes: list[Manifest]
) -> Manifest:
    """Return a pod without a node, with the fields of the spec for pods. Its containers are those with Hadoop."""
    metadata = objects.metadata(cluster, Names(cluster).pod(host)) | {
        "annotations": {ANNOTATION_SETTINGS: rendered.digest}
    }
    metadata["labels"] |= {
        names.APP_COMPONENT: role.value,
        names.LABEL_QUEUE: cluster.queue,
        names.LABEL_TASK_TYPE: role.value,
        LABEL_HOST: host,
        **({names.LABEL_APART: cluster.uid} if role is Role.CORE else {}),
    }
    manifest = manifests.pod(
        metadata,
        cluster.spec,
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


def master_pod(cluster: Cluster, rendered: Rendered, settings: PodSettings, *, may_format: bool) -> Manifest:
    """Return the manifest, without a node.

    With `may_format` the status has never had an ID of HDFS: only then is an empty volume formatted.
    """
    heaps = sizes.heaps(cluster, Role.MASTER)
    hadoop = [
        containers.daemon(cluster, model.MASTER, daemon, size, **_parts(cluster, daemon, may_format=may_format))
        for daemon, size in heaps.daemons.items()
    ]
    containers.with_storage(hadoop[0], cluster)
    hadoop.append(containers.refresh(cluster, cluster_contract.TRANSIENT_LABEL))
    volumes = [
        containers.conf_volume(cluster, rendered),
        containers.data_volume(cluster, model.MASTER),
        containers.empty_volume(containers.TMP),
        containers.empty_volume("checkpoint"),
        containers.empty_volume("refresh", quantity.format_bytes(_REFRESH_BYTES)),
        *manifests.endpoint_volumes(),
    ]
    manifest = _pod(cluster, model.MASTER, Role.MASTER, rendered, hadoop, volumes)
    spec = manifest["spec"]
    spec["containers"].append(_agent(cluster, settings))  # after the template: the user's variables are not for it
    weights = [*([_DAEMON_SHARE] * len(heaps.daemons)), _SMALL_SHARE, _SMALL_SHARE]
    containers.with_cpu(spec["containers"], cluster.master, weights)
    present = spec.get("imagePullSecrets", [])
    ours = [{"name": name} for name in settings.image_pull_secrets]
    if secrets := [*present, *(secret for secret in ours if secret not in present)]:
        spec["imagePullSecrets"] = secrets
    return manifest


def _parts(cluster: Cluster, daemon: daemons.Daemon, *, may_format: bool) -> Manifest:
    match daemon:
        case daemons.NAME_NODE:
            folder = daemons.NAME_MOUNT
            env = [
                ("BOATHOUSE_CLUSTER_ID", cluster_id(cluster)),
                ("BOATHOUSE_NAME_FOLDER", daemons.NAME_FOLDER),
                ("BOATHOUSE_EXCLUDE_FILE", daemons.HDFS_EXCLUDE),
                *([("BOATHOUSE_FORMAT", "1")] if may_format else []),
            ]
        case daemons.RESOURCE_MANAGER:
            folder, env = daemons.RM_STATE_FOLDER, [("BOATHOUSE_EXCLUDE_FILE", daemons.YARN_EXCLUDE)]
        case daemons.CHECKPOINT:
            return {"mounts": [containers.mount("checkpoint", daemons.CHECKPOINT_FOLDER)]}
        case _:
            return {}
    return {"env": env, "mounts": [containers.data_mount(folder), containers.data_mount(daemons.AGENT_FOLDER)]}


def cluster_id(cluster: Cluster) -> str:
    """Return the ID of the cluster's HDFS."""
    return f"CID-{cluster.uid}"


def _agent(cluster: Cluster, settings: PodSettings) -> Manifest:
    spec = cluster_contract.AgentSpec(
        namespace=cluster.namespace,
        cluster_uid=cluster.uid,
        progress_url=settings.progress_url,
        domain=Names(cluster).domain,
        has_compute=cluster.spec.compute,
        name_node_port=daemons.NAME_NODE_HTTP_PORT,
        resource_manager_port=daemons.RESOURCE_MANAGER_HTTP_PORT,
        history_port=daemons.HISTORY_HTTP_PORT,
        node_manager_port=daemons.NODE_MANAGER_PORT,
        canary_port=daemons.CANARY_PORT,
        control_port=daemons.CONTROL_PORT,
        files_path=daemons.AGENT_FOLDER,
        refresh_path=daemons.REFRESH_FOLDER,
    )
    return {
        "name": AGENT,
        "image": settings.agent_image,
        "imagePullPolicy": settings.agent_image_pull_policy,
        "command": ["boathouse-task", "agent"],
        "env": [
            {"name": cluster_contract.AGENT_ENV, "value": msgspec.json.encode(spec).decode()},
            *manifests.field_variables(
                (contract.POD_NAME_ENV, "metadata.name"),
                (contract.POD_UID_ENV, "metadata.uid"),
                (contract.NODE_NAME_ENV, "spec.nodeName"),
            ),
        ],
        "ports": [
            {"name": "canary", "containerPort": daemons.CANARY_PORT, "protocol": "TCP"},
            {"name": "control", "containerPort": daemons.CONTROL_PORT, "protocol": "TCP"},
        ],
        "resources": {"requests": {"memory": f"{sizes.AGENT_MIB}Mi"}, "limits": {"memory": _AGENT_LIMIT}},
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            containers.data_mount(daemons.AGENT_FOLDER),
            containers.mount("refresh", daemons.REFRESH_FOLDER),
            *manifests.endpoint_mounts(),
        ],
    }


def worker_pod(cluster: Cluster, host: str, role: Role, rendered: Rendered) -> Manifest:
    """Return the manifest, without a node."""
    heaps, spec = sizes.heaps(cluster, role), cluster.spec
    is_transient = role is Role.TRANSIENT
    requests = cluster.transient if is_transient else cluster.core
    scratch_bytes = quantity.units((spec.transient if is_transient else spec.core).scratch) if spec.compute else 0
    offer = [  # from which the settings of a NodeManager say what it offers
        (daemons.YARN_MEMORY_ENV, str(heaps.yarn_mb)),
        (daemons.YARN_VCORES_ENV, str(-(-requests.cpu_milli // 1000))),
        *([(daemons.LABELS_ENV, "config")] if is_transient else []),
    ]
    hadoop = []
    for daemon, size in heaps.daemons.items():
        env, mounts = [], [containers.data_mount(daemons.BLOCKS_FOLDER)]
        if daemon is daemons.NODE_MANAGER:
            env, mounts = offer, [containers.mount(_LOCAL, daemons.LOCAL_FOLDER)]
        hadoop.append(containers.daemon(cluster, host, daemon, size, env=env, mounts=mounts))
    containers.with_storage(hadoop[0], cluster, scratch_bytes)
    containers.with_cpu(hadoop, requests, [_CPU_WEIGHTS[daemon] for daemon in heaps.daemons])
    volumes = [containers.conf_volume(cluster, rendered), containers.empty_volume(containers.TMP)]
    if role is Role.CORE:
        volumes.append(containers.data_volume(cluster, host))
    if spec.compute:
        volumes.append(containers.empty_volume(_LOCAL, quantity.format_bytes(scratch_bytes)))
    return _pod(cluster, host, role, rendered, hadoop, volumes)


def node_pod(pod: facts.PodFacts) -> NodePod | None:
    """Return the node of a pod; None if the pod is not a node of a cluster."""
    labels = pod.metadata.labels
    host = labels.get(LABEL_HOST, "")
    role = model.role_of(host)
    if role is None or labels.get(LABEL_TASK_TYPE) != role:
        return None
    statuses = pod.status.container_statuses
    has_started = any(status.state.running or status.state.terminated for status in statuses)
    life = pod_life.life_by_phase(pod, has_started=has_started)
    return NodePod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        host=host,
        role=role,
        number=model.number_of(host),
        node=pod.node_name or None,
        address=pod.status.pod_ip,
        life=life,
        is_ready=life is PodLife.RUNNING and all(status.ready for status in statuses),
        settings=pod.metadata.annotations.get(ANNOTATION_SETTINGS, ""),
        deleting_since_s=pod_life.deleting_since_s(pod),
        problem=_problem(pod) if life.is_live else None,
        resources=pod.resources,
    )


def _problem(pod: facts.PodFacts) -> Problem | None:
    """Return why the NameNode does not use its volume, or the first reason why a container does not start."""
    problems = (pod_life.problem(status) or _crash(status) for status in pod.status.container_statuses)
    return _refusal(pod_life.container(pod, daemons.NAME_NODE.container)) or next(filter(None, problems), None)


def _crash(status: wire.ContainerStatus) -> Problem | None:
    waiting, ended = status.state.waiting, status.last_state.terminated
    if waiting is None or waiting.reason != CRASHING or ended is None:
        return None
    last = printable(ended.message.strip()[-_MAX_LOG:], _MAX_LOG)
    message = f"the container {status.name} ended with exit code {ended.exit_code}" + (f": {last}" if last else "")
    return Problem(reason=CRASHING, message=message)


def _refusal(status: wire.ContainerStatus | None) -> Problem | None:
    """Return why the NameNode's volume is refused. This holds while its container starts again, until it is ready."""
    ended = (status.state.terminated or status.last_state.terminated) if status else None
    if status is None or status.ready or ended is None or ended.exit_code != REFUSED:
        return None
    match = _REFUSAL.match(ended.message)
    reason, message = (match["reason"], match["message"]) if match else (Reason.NAME_VOLUME_EMPTY, ended.message)
    return Problem(reason=reason, message=printable(message.strip(), pod_life.MAX_MESSAGE))
