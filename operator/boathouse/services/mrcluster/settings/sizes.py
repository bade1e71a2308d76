"""Sizes of YARN's nodes and containers that fit one another. Pure."""

import dataclasses
from typing import Final

from boathouse.resources import quantity
from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.settings import memory, paths

UNIT_MB: Final = memory.UNIT_MB
AM_MEMORY: Final = "yarn.app.mapreduce.am.resource.mb"
MAP_MEMORY: Final = "mapreduce.map.memory.mb"
_AM_MB: Final = 384
_MAP_MB: Final = 512


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Memory in MiB.

    Attributes:
        core_mb: What a core node offers.
        transient_mb: What a transient node offers, also if the cluster has none yet.
        am_mb: Size of an ApplicationMaster.
        map_mb: Size of a map task, which is a slot; by default every node has room for one.
    """

    core_mb: int
    transient_mb: int
    am_mb: int
    map_mb: int

    @property
    def largest_mb(self) -> int:
        """Return what the largest node offers."""
        return max(self.core_mb, self.transient_mb)


def heaps(cluster: Cluster, role: Role) -> memory.Heaps:
    """Return how the pods of a role divide their memory.

    Raises:
        ValueError: The daemons need more.
    """
    volume = cluster.spec.core.volume
    in_memory = role is Role.CORE and volume.empty_dir and volume.medium == "Memory"
    requests = {Role.MASTER: cluster.master, Role.CORE: cluster.core, Role.TRANSIENT: cluster.transient}[role]
    return memory.heaps(
        role,
        requests.memory_bytes,
        compute=cluster.spec.compute,
        in_memory_bytes=quantity.units(volume.size) if in_memory else 0,
    )


def of(cluster: Cluster) -> Sizes:
    """Return the sizes of a cluster with YARN: the user's, or defaults that fit.

    Raises:
        ValueError: The daemons need more, or a size is not a number.
    """
    core_mb = heaps(cluster, Role.CORE).yarn_mb
    transient_mb = heaps(cluster, Role.TRANSIENT).yarn_mb
    return Sizes(
        core_mb=core_mb,
        transient_mb=transient_mb,
        am_mb=_setting(cluster, AM_MEMORY, min(_AM_MB, core_mb)),
        map_mb=_setting(cluster, MAP_MEMORY, min(_MAP_MB, core_mb, transient_mb)),
    )


def check(cluster: Cluster) -> None:
    """Refuse a cluster whose daemons or jobs have too little memory.

    An ApplicationMaster runs on a core node; a map needs room beside it, or on another node.

    Raises:
        ValueError: What to change.
    """
    heaps(cluster, Role.MASTER)
    heaps(cluster, Role.CORE)
    if not cluster.spec.compute:
        return
    sizes = of(cluster)
    am_mb, map_mb = _rounded(sizes.am_mb), _rounded(sizes.map_mb)
    if am_mb > sizes.core_mb:
        raise ValueError(
            f"a core node offers {sizes.core_mb} MiB to YARN, and an ApplicationMaster requests {am_mb}: "
            f"raise core.resources.memory, or lower {AM_MEMORY}"
        )
    others = (
        sizes.core_mb if cluster.spec.core.count > 1 else 0,
        sizes.transient_mb if cluster.spec.transient.maximum else 0,
    )
    if map_mb > max(sizes.core_mb - am_mb, *others):
        raise ValueError(
            f"no node has {map_mb} MiB for a map beside an ApplicationMaster of {am_mb}: "
            f"raise core.resources.memory, or lower {MAP_MEMORY}"
        )


def classpath(cluster: Cluster) -> str:
    """Return the classpath of the containers of jobs."""
    return ",".join((paths.CONF, *cluster.spec.classpath.split(":")))


def _setting(cluster: Cluster, key: str, default: int) -> int:
    text = (cluster.spec.mapreduce.settings or {}).get(key, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len("2147483647") and int(text) > 0):
        raise ValueError(f'{key} is "{text[:64]}", which is not a number of MiB: correct it')
    return int(text)


def _rounded(size_mb: int) -> int:
    return -(-size_mb // UNIT_MB) * UNIT_MB
