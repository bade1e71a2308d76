"""The containers with Hadoop, the volumes of the pods, and what containers mount of them. Pure."""

from collections.abc import Sequence
from typing import Final

from boathouse.resources import quantity
from boathouse.services import hadoop
from boathouse.services.frame import manifests
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrcluster import daemons, files, model, objects, sizes
from boathouse.services.mrcluster.daemons import Daemon
from boathouse.services.mrcluster.files import Rendered
from boathouse.services.mrcluster.model import Cluster, Names, Requests
from boathouse.services.mrcluster.sizes import Memory

_CONF: Final = "conf"
_DATA: Final = "data"
TMP: Final = "tmp"
REFRESH: Final = "refresh"
_REFRESH: Final = Memory(limit_mib=256, heap_mib=64)
_PARALLEL_FROM_MIB: Final = 2048
"""From this memory on a JVM uses its default collector, which has threads of its own."""


def conf_volume(cluster: Cluster, rendered: Rendered) -> Manifest:
    """Return the volume with the files of the cluster."""
    return {"name": _CONF, "configMap": {"name": Names(cluster).config_map(rendered.digest)}}


def data_volume(cluster: Cluster, host: str) -> Manifest:
    """Return the volume of the master or of a core node.

    Raises:
        ValueError: The host stores nothing.
    """
    volume = objects.volume(cluster, host)
    if volume is None:
        raise ValueError(f"{host} of the cluster {cluster.name} has no volume")
    if not volume.empty_dir:
        return {"name": _DATA, "persistentVolumeClaim": {"claimName": Names(cluster).claim(host)}}
    medium = {"medium": volume.medium} if volume.medium else {}
    return {"name": _DATA, "emptyDir": {**medium, "sizeLimit": quantity.format_bytes(quantity.units(volume.size))}}


def empty_volume(name: str, size: str | int | None = None) -> Manifest:
    """Return a folder that lives as long as the pod. That of temporary files has a part for each container."""
    return {"name": name, "emptyDir": {} if size is None else {"sizeLimit": str(size)}}


def data_mount(path: str) -> Manifest:
    """Return the mount of a part of the volume, which is the last element of the path."""
    return {"name": _DATA, "mountPath": path, "subPath": path.rpartition("/")[2]}


def mount(name: str, path: str) -> Manifest:
    """Return the mount of an entire volume."""
    return {"name": name, "mountPath": path}


def daemon(
    cluster: Cluster,
    host: str,
    program: Daemon,
    size: Memory,
    *,
    env: Sequence[tuple[str, str]] = (),
    mounts: Sequence[Manifest] = (),
) -> Manifest:
    """Return the container of a daemon, without CPU (see `with_cpu`).

    A daemon has no liveness probe: a long garbage collection is no failure, and a JVM that fails ends.
    """
    command = ("start.sh", program.java_class)
    container = _container(cluster, host, program.container, command, size, env=env, mounts=mounts)
    if program.port:
        container["ports"] = [{"name": program.container, "containerPort": program.port, "protocol": "TCP"}]
        container["readinessProbe"] = {"tcpSocket": {"port": program.port}, "periodSeconds": 5}
    return container


def refresh(cluster: Cluster, label: str) -> Manifest:
    """Return the container that carries out the agent's requests with the commands of the cluster's image."""
    command, mounts = ("refresh.sh", daemons.REFRESH_FOLDER, label), [mount("refresh", daemons.REFRESH_FOLDER)]
    options = ["-XX:TieredStopAtLevel=1"]
    container = _container(cluster, model.MASTER, REFRESH, command, _REFRESH, options=options, mounts=mounts)
    container["resources"]["requests"]["memory"] = f"{sizes.REFRESH_MIB}Mi"
    return container


def with_cpu(containers: list[Manifest], requests: Requests, weights: Sequence[int]) -> list[Manifest]:
    """Return the containers with the pod's CPU, divided by weight.

    Each container may use all of it: with a part, the start of a JVM would take minutes.
    """
    shares = [requests.cpu_milli * weight // sum(weights) for weight in weights]
    shares[0] += requests.cpu_milli - sum(shares)
    for container, share in zip(containers, shares, strict=True):
        container["resources"]["requests"]["cpu"] = quantity.format_milli(share)
        container["resources"]["limits"]["cpu"] = quantity.format_milli(requests.cpu_milli)
    return containers


def with_storage(container: Manifest, cluster: Cluster, least_bytes: int = 0) -> None:
    """Add the pod's ephemeral storage to one of its containers: the kubelet compares the sum of all with the limit."""
    default, resources = cluster.defaults.ephemeral_storage, container["resources"]
    if default.request_bytes:
        resources["requests"]["ephemeral-storage"] = quantity.format_bytes(default.request_bytes)
    if default.limit_bytes:
        limit = max(default.limit_bytes, least_bytes)
        resources["limits"]["ephemeral-storage"] = quantity.format_bytes(limit)


def _container(
    cluster: Cluster,
    host: str,
    name: str,
    command: Sequence[str],
    size: Memory,
    *,
    options: Sequence[str] = (),
    env: Sequence[tuple[str, str]] = (),
    mounts: Sequence[Manifest] = (),
) -> Manifest:
    """Return a container with Hadoop, with its settings, a name for its user, and a temporary folder.

    Its variables are a default, the user's, then ours, so that ours win. The JVM forgets addresses soon: a master that
    starts again has another one.
    """
    names, script = Names(cluster), f"{daemons.CONF_FOLDER}/{command[0]}"
    java_options = [
        f"-Xmx{size.heap_mib}m",
        *(["-XX:+UseSerialGC"] if size.limit_mib < _PARALLEL_FROM_MIB else []),
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        *(["-Djava.net.preferIPv4Stack=true"] if cluster.defaults.prefer_ipv4 else []),
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
        daemons.FQDN_ENV: names.fqdn(host),
        "BOATHOUSE_MASTER": names.fqdn(model.MASTER),
    }
    return {
        "name": name,
        "image": cluster.image,
        "imagePullPolicy": cluster.spec.image_pull_policy,
        "command": ["sh", script, *command[1:]],
        "env": [
            *manifests.variables([hadoop.ARENAS]),
            *map(manifests.as_json, cluster.spec.env or ()),
            *manifests.variables(ours.items()),
            *manifests.field_variables(("BOATHOUSE_POD_IP", "status.podIP")),
            *manifests.variables(env),
        ],
        "resources": {
            "requests": {"memory": f"{size.limit_mib}Mi"},
            "limits": {"memory": f"{size.limit_mib}Mi"},
        },
        "securityContext": manifests.container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": _CONF, "mountPath": daemons.CONF_FOLDER, "readOnly": True},
            {"name": _CONF, "mountPath": "/etc/passwd", "subPath": files.USERS_FILE, "readOnly": True},
            {"name": _CONF, "mountPath": "/etc/group", "subPath": files.GROUPS_FILE, "readOnly": True},
            {"name": TMP, "mountPath": "/tmp", "subPath": name},  # noqa: S108 - inside the pod
            *mounts,
        ],
    }
