"""The master's pod: NameNode, ResourceManager, JobHistoryServer, and the agent. Pure."""

from typing import Final

import msgspec

from boathouse.resources import quantity
from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame import manifests
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrcluster import daemons, naming, ports
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.pods import containers, pod, volumes
from boathouse.services.mrcluster.pods.pod import PodSettings
from boathouse.services.mrcluster.settings import memory, paths, sizes
from boathouse.services.mrcluster.settings.files import Rendered
from boathouse_task import cluster_contract, contract

AGENT: Final = "agent"
_AGENT_LIMIT: Final = "96Mi"
_SMALL_SHARE: Final = 1
_DAEMON_SHARE: Final = 8
_REFRESH_BYTES: Final = 1024**2


def build(cluster: Cluster, rendered: Rendered, settings: PodSettings, *, may_format: bool) -> Manifest:
    """Return the manifest, without a node.

    Args:
        cluster: The cluster.
        rendered: Its settings.
        settings: Those of the operator.
        may_format: Whether the status has never had an ID of HDFS: only then is an empty volume formatted.

    Raises:
        ValueError: The daemons need more memory.
    """
    heaps = sizes.heaps(cluster, Role.MASTER)
    hadoop = [
        containers.daemon(cluster, naming.MASTER, daemon, size, **_parts(cluster, daemon, may_format=may_format))
        for daemon, size in heaps.daemons.items()
    ]
    containers.with_storage(hadoop[0], cluster)
    hadoop.append(containers.refresh(cluster, cluster_contract.TRANSIENT_LABEL))
    manifest = pod.build(cluster, naming.MASTER, Role.MASTER, rendered, hadoop, _volumes(cluster, rendered))
    spec = manifest["spec"]
    spec["containers"].append(_agent(cluster, settings))  # after the template: the user's variables are not for it
    weights = [*([_DAEMON_SHARE] * len(heaps.daemons)), _SMALL_SHARE, _SMALL_SHARE]
    containers.with_cpu(spec["containers"], cluster.master, weights)
    present = spec.get("imagePullSecrets", [])
    ours = [{"name": name} for name in settings.image_pull_secrets]
    if secrets := [*present, *(each for each in ours if each not in present)]:
        spec["imagePullSecrets"] = secrets
    return manifest


def _parts(cluster: Cluster, daemon: daemons.Daemon, *, may_format: bool) -> Manifest:
    """Return the variables and mounts of a daemon."""
    match daemon:
        case daemons.NAME_NODE:
            env = [
                ("BOATHOUSE_CLUSTER_ID", cluster_id(cluster)),
                ("BOATHOUSE_NAME_FOLDER", paths.NAME_FOLDER),
                ("BOATHOUSE_EXCLUDE_FILE", paths.HDFS_EXCLUDE),
                *([("BOATHOUSE_FORMAT", "1")] if may_format else []),
            ]
            return {"env": env, "mounts": [volumes.data_mount(path) for path in (paths.NAME, paths.AGENT)]}
        case daemons.RESOURCE_MANAGER:
            env = [("BOATHOUSE_EXCLUDE_FILE", paths.YARN_EXCLUDE)]
            return {"env": env, "mounts": [volumes.data_mount(path) for path in (paths.RM_STATE, paths.AGENT)]}
        case daemons.CHECKPOINT:
            return {"mounts": [volumes.mount("checkpoint", paths.CHECKPOINT)]}
        case _:
            return {}


def cluster_id(cluster: Cluster) -> str:
    """Return the ID of the cluster's HDFS."""
    return f"CID-{cluster.uid}"


def _agent(cluster: Cluster, settings: PodSettings) -> Manifest:
    service = f"{Names(cluster).service}.{cluster.namespace}.svc"
    spec = cluster_contract.AgentSpec(
        namespace=cluster.namespace,
        cluster_uid=cluster.uid,
        progress_url=settings.progress_url,
        domain=service,
        has_compute=cluster.spec.compute,
        name_node_port=ports.NAME_NODE_HTTP,
        resource_manager_port=ports.RESOURCE_MANAGER_HTTP,
        history_port=ports.HISTORY_HTTP,
        node_manager_port=ports.NODE_MANAGER,
        canary_port=ports.CANARY,
        control_port=ports.CONTROL,
        files_path=paths.AGENT,
        refresh_path=paths.REFRESH,
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
            {"name": "canary", "containerPort": ports.CANARY, "protocol": "TCP"},
            {"name": "control", "containerPort": ports.CONTROL, "protocol": "TCP"},
        ],
        "resources": {"requests": {"memory": f"{memory.AGENT_MIB}Mi"}, "limits": {"memory": _AGENT_LIMIT}},
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            volumes.data_mount(paths.AGENT),
            volumes.mount("refresh", paths.REFRESH),
            *manifests.endpoint_mounts(),
        ],
    }


def _volumes(cluster: Cluster, rendered: Rendered) -> list[Manifest]:
    return [
        volumes.conf(cluster, rendered),
        volumes.data(cluster, naming.MASTER),
        volumes.tmp(),
        volumes.empty("checkpoint"),
        volumes.empty("refresh", quantity.format_bytes(_REFRESH_BYTES)),
        *manifests.endpoint_volumes(),
    ]
