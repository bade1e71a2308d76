"""The volumes of the pods, and what containers mount of them. Pure."""

from typing import Final

from boathouse.resources import quantity
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrcluster import claims
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.naming import Names
from boathouse.services.mrcluster.settings import files, paths
from boathouse.services.mrcluster.settings.files import Rendered

_CONF: Final = "conf"
_DATA: Final = "data"
_TMP: Final = "tmp"


def conf(cluster: Cluster, rendered: Rendered) -> Manifest:
    """Return the volume with the files of the cluster."""
    return {"name": _CONF, "configMap": {"name": Names(cluster).config_map(rendered.digest)}}


def data(cluster: Cluster, host: str) -> Manifest:
    """Return the volume of the master or of a core node.

    Raises:
        ValueError: The host stores nothing.
    """
    found = claims.volume(cluster, host)
    if found is None:
        raise ValueError(f"{host} of the cluster {cluster.name} has no volume")
    if not found.empty_dir:
        return {"name": _DATA, "persistentVolumeClaim": {"claimName": Names(cluster).claim(host)}}
    medium = {"medium": found.medium} if found.medium else {}
    return {"name": _DATA, "emptyDir": {**medium, "sizeLimit": quantity.format_bytes(quantity.units(found.size))}}


def empty(name: str, size: str | int | None = None) -> Manifest:
    """Return a folder that lives as long as the pod."""
    return {"name": name, "emptyDir": {} if size is None else {"sizeLimit": str(size)}}


def tmp() -> Manifest:
    """Return the volume with a temporary folder for each container."""
    return empty(_TMP)


def hadoop_mounts(container: str) -> list[Manifest]:
    """Return the mounts of every container with Hadoop: its settings, a name for its user, a temporary folder."""
    return [
        {"name": _CONF, "mountPath": paths.CONF, "readOnly": True},
        {"name": _CONF, "mountPath": "/etc/passwd", "subPath": files.USERS_FILE, "readOnly": True},
        {"name": _CONF, "mountPath": "/etc/group", "subPath": files.GROUPS_FILE, "readOnly": True},
        {"name": _TMP, "mountPath": "/tmp", "subPath": container},  # noqa: S108 - inside the pod
    ]


def data_mount(path: str) -> Manifest:
    """Return the mount of a part of the volume, which is the last element of the path."""
    return {"name": _DATA, "mountPath": path, "subPath": path.rpartition("/")[2]}


def mount(name: str, path: str) -> Manifest:
    """Return the mount of an entire volume."""
    return {"name": name, "mountPath": path}
