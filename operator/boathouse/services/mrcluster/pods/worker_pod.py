"""The pod of a core node (DataNode and NodeManager) or of a transient node (NodeManager). Pure."""

from typing import Final

from boathouse.resources import quantity
from boathouse.resources.mrcluster.names import Role
from boathouse.services.frame.manifests import Manifest
from boathouse.services.mrcluster import daemons
from boathouse.services.mrcluster.cluster import Cluster, Requests
from boathouse.services.mrcluster.pods import containers, pod, volumes
from boathouse.services.mrcluster.settings import paths, sizes
from boathouse.services.mrcluster.settings.files import Rendered

_LOCAL: Final = "local"
_CPU_WEIGHTS: Final = {daemons.DATA_NODE: 1, daemons.NODE_MANAGER: 4}


def build(cluster: Cluster, host: str, role: Role, rendered: Rendered) -> Manifest:
    """Return the manifest, without a node.

    Raises:
        ValueError: The daemons need more memory.
    """
    heaps = sizes.heaps(cluster, role)
    requests = cluster.transient if role is Role.TRANSIENT else cluster.core
    hadoop = []
    for daemon, size in heaps.daemons.items():
        env, mounts = [], [volumes.data_mount(paths.BLOCKS)]
        if daemon is daemons.NODE_MANAGER:
            env, mounts = _offer(role, requests, heaps.yarn_mb), [volumes.mount(_LOCAL, paths.LOCAL)]
        hadoop.append(containers.daemon(cluster, host, daemon, size, env=env, mounts=mounts))
    containers.with_storage(hadoop[0], cluster, _scratch_bytes(cluster, role))
    containers.with_cpu(hadoop, requests, [_CPU_WEIGHTS[daemon] for daemon in heaps.daemons])
    return pod.build(cluster, host, role, rendered, hadoop, _volumes(cluster, host, role, rendered))


def _offer(role: Role, requests: Requests, yarn_mb: int) -> list[tuple[str, str]]:
    """Return the variables of a NodeManager from which its settings say what it offers."""
    return [
        (paths.YARN_MEMORY_ENV, str(yarn_mb)),
        (paths.YARN_VCORES_ENV, str(-(-requests.cpu_milli // 1000))),
        *([(paths.LABELS_ENV, "config")] if role is Role.TRANSIENT else []),
    ]


def _volumes(cluster: Cluster, host: str, role: Role, rendered: Rendered) -> list[Manifest]:
    data = [volumes.data(cluster, host)] if role is Role.CORE else []
    scratch = quantity.format_bytes(_scratch_bytes(cluster, role))
    local = [volumes.empty(_LOCAL, scratch)] if cluster.spec.compute else []
    return [volumes.conf(cluster, rendered), volumes.tmp(), *data, *local]


def _scratch_bytes(cluster: Cluster, role: Role) -> int:
    if not cluster.spec.compute:
        return 0
    node = cluster.spec.transient if role is Role.TRANSIENT else cluster.spec.core
    return quantity.units(node.scratch)
