"""The pods of a cluster with their containers and volumes. Pure.

The master's pod has NameNode, ResourceManager, JobHistoryServer and the agent; that of a core node has DataNode and
NodeManager, that of a transient node a NodeManager.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from boathouse.resources import names, quantity
from boathouse.resources.mrcluster.names import ANNOTATION_SETTINGS, LABEL_HOST, Role
from boathouse.services import hadoop
from boathouse.services.frame import manifests
from boathouse.services.mrcluster import daemons, files, objects, sizes
from boathouse.services.mrcluster.model import MASTER, Cluster, Requests, known_role
from boathouse_task import cluster_contract, contract

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PATIENCE_S: Final = {Role.MASTER: 300, Role.CORE: 300, Role.TRANSIENT: 60}
"""How long a pod stays on a node that does not respond. Core nodes have data there."""
AGENT: Final = "agent"
_CPU_WEIGHTS: Final = {daemons.DATA_NODE: 1, daemons.NODE_MANAGER: 4}
_REFRESH: Final = "refresh"
_CONF: Final = "conf"
_DATA: Final = "data"
_TMP: Final = "tmp"
"""Temporary files: each container has a part."""
_LOCAL: Final = "local"
_CHECKPOINT: Final = "checkpoint"
_PARALLEL_FROM_MIB: Final = 2048
"""From this memory on a JVM uses its default collector, which has threads of its own."""
CONTAINERS: Final = frozenset({*(daemon.container for daemon in daemons.ALL), _REFRESH, AGENT})
"""The containers of all roles."""


def of(cluster: Cluster, host: str, rendered: files.Rendered, *, may_format: bool = False) -> manifests.Manifest:
    """Return the pod of a host, without a node.

    With `may_format` the status has never had an ID of HDFS: only then is an empty volume of the master formatted.
    """
    role = known_role(host)
    return _master(cluster, rendered, may_format) if role is Role.MASTER else _worker(cluster, host, role, rendered)


def _pod(
    cluster: Cluster,
    host: str,
    role: Role,
    rendered: files.Rendered,
    containers: list[manifests.Manifest],
    volumes: list[manifests.Manifest],
) -> manifests.Manifest:
    """Return a pod with the fields of the spec for pods. Its containers are those with Hadoop."""
    metadata = objects.metadata(cluster, cluster.named(host)) | {"annotations": {ANNOTATION_SETTINGS: rendered.digest}}
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
        user_id=files.USER_ID,
        containers=containers,
        volumes=[{"name": _CONF, "configMap": {"name": cluster.config_map(rendered.digest)}}, *volumes],
        tolerations=cluster.spec.tolerations or (),
        patience_s=_PATIENCE_S[role],
        node_selector=cluster.spec.node_selector or {},
        image_pull_secrets=cluster.config.hadoop.image_pull_secrets,
        more={
            "restartPolicy": "Always",
            "hostname": host,
            "subdomain": cluster.service,
            "terminationGracePeriodSeconds": 60,
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


def _apart(affinity: manifests.Manifest, cluster: Cluster) -> manifests.Manifest:
    """Return the affinity with what the label `apart` means to Boathouse, in words that cluster autoscalers know."""
    anti = affinity.get("podAntiAffinity", {})
    term = {"labelSelector": {"matchLabels": {names.LABEL_APART: cluster.uid}}, "topologyKey": names.HOSTNAME}
    return {**affinity, "podAntiAffinity": {**anti, _REQUIRED: [*anti.get(_REQUIRED, ()), term]}}


def _in_zones(affinity: manifests.Manifest, zones: Sequence[str]) -> manifests.Manifest:
    """Return the affinity with the zones required in each of its terms, of which a node must match one."""
    node = affinity.get("nodeAffinity", {})
    terms = node.get(_REQUIRED, {}).get("nodeSelectorTerms", [{}])
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": sorted(zones)}
    terms = [{**term, "matchExpressions": [*term.get("matchExpressions", ()), zone]} for term in terms]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": terms}}}


def _master(cluster: Cluster, rendered: files.Rendered, may_format: bool) -> manifests.Manifest:
    heaps = sizes.heaps(cluster, Role.MASTER)
    containers = [
        _daemon(cluster, MASTER, daemon, size, **_parts(cluster, daemon, may_format))
        for daemon, size in heaps.daemons.items()
    ]
    _add_storage(containers[0], cluster)
    containers.append(_refresh(cluster))
    volumes = [
        _data_volume(cluster, MASTER),
        _empty_volume(_TMP),
        _empty_volume(_CHECKPOINT),
        _empty_volume(_REFRESH, 1024**2),
        *manifests.endpoint_volumes(),
    ]
    manifest = _pod(cluster, MASTER, Role.MASTER, rendered, containers, volumes)
    spec = manifest["spec"]
    spec["containers"].append(_agent(cluster))  # after the template: the user's variables are not for it
    _add_cpu(spec["containers"], cluster.requests[Role.MASTER], [*([8] * len(heaps.daemons)), 1, 1])
    present = spec.get("imagePullSecrets", [])
    ours = [{"name": name} for name in cluster.config.task.image_pull_secrets]
    if secrets := [*present, *(secret for secret in ours if secret not in present)]:
        spec["imagePullSecrets"] = secrets
    return manifest


def _parts(cluster: Cluster, daemon: daemons.Daemon, may_format: bool) -> manifests.Manifest:
    """Return variables and mounts of a daemon of the master."""
    match daemon:
        case daemons.NAME_NODE:
            folder = daemons.NAME_MOUNT
            env = [
                ("BOATHOUSE_CLUSTER_ID", f"CID-{cluster.uid}"),
                ("BOATHOUSE_NAME_FOLDER", daemons.NAME_FOLDER),
                ("BOATHOUSE_EXCLUDE_FILE", daemons.HDFS_EXCLUDE),
                *([("BOATHOUSE_FORMAT", "1")] if may_format else []),
            ]
        case daemons.RESOURCE_MANAGER:
            folder, env = daemons.RM_STATE_FOLDER, [("BOATHOUSE_EXCLUDE_FILE", daemons.YARN_EXCLUDE)]
        case daemons.CHECKPOINT:
            return {"mounts": [_mount(_CHECKPOINT, daemons.CHECKPOINT_FOLDER)]}
        case _:
            return {}
    return {"env": env, "mounts": [_data_mount(folder), _data_mount(daemons.AGENT_FOLDER)]}


def _agent(cluster: Cluster) -> manifests.Manifest:
    config = cluster.config
    spec = cluster_contract.AgentSpec(
        namespace=cluster.namespace,
        cluster_uid=cluster.uid,
        progress_url=f"https://{config.progress_service}.{config.namespace}.svc",
        domain=cluster.domain,
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
        "image": config.task.image,
        "imagePullPolicy": config.task.image_pull_policy,
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
        "resources": {"requests": {"memory": f"{sizes.AGENT_MIB}Mi"}, "limits": {"memory": "96Mi"}},
        "securityContext": manifests.container_security(),
        "volumeMounts": [
            _data_mount(daemons.AGENT_FOLDER),
            _mount(_REFRESH, daemons.REFRESH_FOLDER),
            *manifests.endpoint_mounts(),
        ],
    }


def _worker(cluster: Cluster, host: str, role: Role, rendered: files.Rendered) -> manifests.Manifest:
    heaps, spec = sizes.heaps(cluster, role), cluster.spec
    is_transient = role is Role.TRANSIENT
    requests = cluster.requests[role]
    scratch_bytes = quantity.units((spec.transient if is_transient else spec.core).scratch) if spec.compute else 0
    offer = [  # from which the settings of a NodeManager say what it offers
        (daemons.YARN_MEMORY_ENV, str(heaps.yarn_mb)),
        (daemons.YARN_VCORES_ENV, str(-(-requests.cpu_milli // 1000))),
        *([(daemons.LABELS_ENV, "config")] if is_transient else []),
    ]
    containers = []
    for daemon, size in heaps.daemons.items():
        env, mounts = [], [_data_mount(daemons.BLOCKS_FOLDER)]
        if daemon is daemons.NODE_MANAGER:
            env, mounts = offer, [_mount(_LOCAL, daemons.LOCAL_FOLDER)]
        containers.append(_daemon(cluster, host, daemon, size, env=env, mounts=mounts))
    _add_storage(containers[0], cluster, scratch_bytes)
    _add_cpu(containers, requests, [_CPU_WEIGHTS[daemon] for daemon in heaps.daemons])
    volumes = [
        _empty_volume(_TMP),
        *([_data_volume(cluster, host)] if role is Role.CORE else []),
        *([_empty_volume(_LOCAL, scratch_bytes)] if spec.compute else []),
    ]
    return _pod(cluster, host, role, rendered, containers, volumes)


# Volumes


def _data_volume(cluster: Cluster, host: str) -> manifests.Manifest:
    volume = objects.volume(cluster, host)
    assert volume is not None
    if not volume.empty_dir:
        return {"name": _DATA, "persistentVolumeClaim": {"claimName": cluster.named(host)}}
    medium = {"medium": volume.medium} if volume.medium else {}
    return {"name": _DATA, "emptyDir": {**medium, "sizeLimit": quantity.format_bytes(quantity.units(volume.size))}}


def _empty_volume(name: str, most_bytes: int | None = None) -> manifests.Manifest:
    return {"name": name, "emptyDir": {} if most_bytes is None else {"sizeLimit": quantity.format_bytes(most_bytes)}}


def _data_mount(path: str) -> manifests.Manifest:
    """Return the mount of a part of the volume, which is the last element of the path."""
    return {"name": _DATA, "mountPath": path, "subPath": path.rpartition("/")[2]}


def _mount(name: str, path: str) -> manifests.Manifest:
    return {"name": name, "mountPath": path}


# Containers with Hadoop


def _daemon(
    cluster: Cluster,
    host: str,
    program: daemons.Daemon,
    size: sizes.Memory,
    *,
    env: Sequence[tuple[str, str]] = (),
    mounts: Sequence[manifests.Manifest] = (),
) -> manifests.Manifest:
    """Return a daemon's container, without CPU and without liveness probe: a long garbage collection is no failure."""
    command = ("start.sh", program.java_class)
    container = _container(cluster, host, program.container, command, size, env=env, mounts=mounts)
    if program.port:
        container["ports"] = [{"name": program.container, "containerPort": program.port, "protocol": "TCP"}]
        container["readinessProbe"] = {"tcpSocket": {"port": program.port}, "periodSeconds": 5}
    return container


def _refresh(cluster: Cluster) -> manifests.Manifest:
    """Return the container that carries out the agent's requests with the commands of the cluster's image."""
    command = ("refresh.sh", daemons.REFRESH_FOLDER, cluster_contract.TRANSIENT_LABEL)
    options, mounts = ["-XX:TieredStopAtLevel=1"], [_mount(_REFRESH, daemons.REFRESH_FOLDER)]
    size = sizes.Memory(limit_mib=256, heap_mib=64)
    container = _container(cluster, MASTER, _REFRESH, command, size, options=options, mounts=mounts)
    container["resources"]["requests"]["memory"] = f"{sizes.REFRESH_MIB}Mi"
    return container


def _add_cpu(containers: list[manifests.Manifest], requests: Requests, weights: Sequence[int]) -> None:
    """Divide the pod's CPU by weight. A container may use all of it: with a part, a JVM would take minutes to start."""
    shares = [requests.cpu_milli * weight // sum(weights) for weight in weights]
    shares[0] += requests.cpu_milli - sum(shares)
    for container, share in zip(containers, shares, strict=True):
        container["resources"]["requests"]["cpu"] = quantity.format_milli(share)
        container["resources"]["limits"]["cpu"] = quantity.format_milli(requests.cpu_milli)


def _add_storage(container: manifests.Manifest, cluster: Cluster, least_bytes: int = 0) -> None:
    """Add the pod's ephemeral storage to one of its containers: the kubelet compares the sum of all with the limit."""
    default, resources = cluster.config.hadoop.ephemeral_storage, container["resources"]
    if default.request_bytes:
        resources["requests"]["ephemeral-storage"] = quantity.format_bytes(default.request_bytes)
    if default.limit_bytes:
        resources["limits"]["ephemeral-storage"] = quantity.format_bytes(max(default.limit_bytes, least_bytes))


def _container(
    cluster: Cluster,
    host: str,
    name: str,
    command: Sequence[str],
    size: sizes.Memory,
    *,
    options: Sequence[str] = (),
    env: Sequence[tuple[str, str]] = (),
    mounts: Sequence[manifests.Manifest] = (),
) -> manifests.Manifest:
    """Return a container with Hadoop, with its settings, a name for its user, and a temporary folder.

    Its variables are a default, the user's, then ours, so that ours win. The JVM forgets addresses soon: a master that
    starts again has another one.
    """
    java_options = [
        f"-Xmx{size.heap_mib}m",
        *(["-XX:+UseSerialGC"] if size.limit_mib < _PARALLEL_FROM_MIB else []),
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        *(["-Djava.net.preferIPv4Stack=true"] if cluster.config.hadoop.prefer_ipv4 else []),
        "-Dsun.net.inetaddr.ttl=5",
        "-Dsun.net.inetaddr.negative.ttl=1",
        files.ADD_OPENS,
        *options,
    ]
    ours = {
        "JAVA_HOME": cluster.spec.java_home,
        "HADOOP_CONF_DIR": daemons.CONF_FOLDER,
        "HADOOP_USER_NAME": hadoop.USER,
        "BOATHOUSE_CLASSPATH": cluster.spec.classpath,
        "BOATHOUSE_JAVA_OPTS": " ".join(java_options),
        daemons.FQDN_ENV: cluster.fqdn(host),
        "BOATHOUSE_MASTER": cluster.fqdn(MASTER),
    }
    return {
        "name": name,
        "image": cluster.image,
        "imagePullPolicy": cluster.spec.image_pull_policy,
        "command": ["sh", f"{daemons.CONF_FOLDER}/{command[0]}", *command[1:]],
        "env": [
            *manifests.variables([hadoop.ARENAS]),
            *map(manifests.as_json, cluster.spec.env or ()),
            *manifests.variables(ours.items()),
            *manifests.field_variables(("BOATHOUSE_POD_IP", "status.podIP")),
            *manifests.variables(env),
        ],
        "resources": {"requests": {"memory": f"{size.limit_mib}Mi"}, "limits": {"memory": f"{size.limit_mib}Mi"}},
        "securityContext": manifests.container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": _CONF, "mountPath": daemons.CONF_FOLDER, "readOnly": True},
            {"name": _CONF, "mountPath": "/etc/passwd", "subPath": files.USERS_FILE, "readOnly": True},
            {"name": _CONF, "mountPath": "/etc/group", "subPath": files.GROUPS_FILE, "readOnly": True},
            {"name": _TMP, "mountPath": "/tmp", "subPath": name},  # noqa: S108 - inside the pod
            *mounts,
        ],
    }
