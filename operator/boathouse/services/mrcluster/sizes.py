"""How pods divide their memory, and sizes of YARN's nodes and containers that fit one another. Pure.

All functions raise a ValueError that says what to change if the daemons need more memory than a pod has.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

from boathouse.resources import quantity
from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import daemons
from boathouse.services.mrcluster.daemons import Daemon
from boathouse.services.mrcluster.model import Cluster

MIB: Final = 1024 * 1024
UNIT_MB: Final = 64
"""YARN's minimum allocation: sizes of containers are multiples of it."""
REFRESH_MIB: Final = 16
"""Requested by the container `refresh`, which seldom runs a command. For that moment its limit is higher."""
AGENT_MIB: Final = 48
_OFF_HEAP_MIB: Final = 128
"""Metaspace, threads, code and buffers of a JVM with a small heap."""
_LEAST_HEAP_MIB: Final = 192
AM_MEMORY: Final = "yarn.app.mapreduce.am.resource.mb"
MAP_MEMORY: Final = "mapreduce.map.memory.mb"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of a daemon in MiB: request and limit of its container, and the heap of its JVM."""

    limit_mib: int
    heap_mib: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Heaps:
    """The memory of a pod by daemon, in the order of the containers, and what a NodeManager offers to YARN, or 0."""

    daemons: Mapping[Daemon, Memory]
    yarn_mb: int = 0


def heaps_of_pod(role: Role, limit_bytes: int, *, compute: bool = True, in_memory_bytes: int = 0) -> Heaps:
    """Return how the pod of a role divides its memory; `in_memory_bytes` is the size of a core node's volume there."""
    limit_mib = limit_bytes // MIB
    heap_mib = min(max(limit_mib // 10, _LEAST_HEAP_MIB), 1024)
    small = Memory(limit_mib=heap_mib + _OFF_HEAP_MIB, heap_mib=heap_mib)
    match role:
        case Role.MASTER:
            return _master(limit_mib, small, compute=compute)
        case Role.TRANSIENT:
            return _node("transient", limit_mib, small)
        case _:
            return _core(limit_mib, small, compute=compute, volume_mib=-(-in_memory_bytes // MIB))


def _master(limit_mib: int, small: Memory, *, compute: bool) -> Heaps:
    """NameNode and SecondaryNameNode both hold the image of the file system: they get what the others leave."""
    small_daemons = (daemons.RESOURCE_MANAGER, daemons.HISTORY) if compute else ()
    taken_mib = REFRESH_MIB + AGENT_MIB + len(small_daemons) * small.limit_mib
    least_mib = taken_mib + 2 * (_LEAST_HEAP_MIB + _OFF_HEAP_MIB)
    if limit_mib < least_mib:
        raise ValueError(f"master.resources.memory is {limit_mib} MiB, less than the daemons need: set {least_mib}Mi")
    half_mib = (limit_mib - taken_mib) // 2
    name_node, checkpoint = _single(limit_mib - taken_mib - half_mib), _single(half_mib)
    return Heaps(
        daemons={daemons.NAME_NODE: name_node, daemons.CHECKPOINT: checkpoint, **dict.fromkeys(small_daemons, small)}
    )


def _core(limit_mib: int, small: Memory, *, compute: bool, volume_mib: int) -> Heaps:
    """What is written to a volume in memory counts for the container that writes it."""
    if compute:
        node = _node("core", limit_mib - small.limit_mib - volume_mib, small)
        data_node = small
    elif limit_mib - volume_mib >= small.limit_mib:
        node, data_node = Heaps(daemons={}), _single(limit_mib - volume_mib)
    else:
        raise ValueError(f"core.resources.memory leaves {limit_mib - volume_mib} MiB to the DataNode: raise it")
    data_node = dataclasses.replace(data_node, limit_mib=data_node.limit_mib + volume_mib)
    return Heaps(daemons={daemons.DATA_NODE: data_node, **node.daemons}, yarn_mb=node.yarn_mb)


def _node(role: str, limit_mib: int, small: Memory) -> Heaps:
    yarn_mb = (limit_mib - small.limit_mib) // UNIT_MB * UNIT_MB
    if yarn_mb < UNIT_MB:
        raise ValueError(f"{role}.resources.memory leaves no memory to YARN's containers: raise it")
    return Heaps(daemons={daemons.NODE_MANAGER: Memory(limit_mib=limit_mib, heap_mib=small.heap_mib)}, yarn_mb=yarn_mb)


def _single(limit_mib: int) -> Memory:
    """Return the memory of a daemon that has its container's for itself."""
    return Memory(limit_mib=limit_mib, heap_mib=limit_mib - max(_OFF_HEAP_MIB, limit_mib // 8))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Memory in MiB that nodes offer to YARN, also if the cluster has none yet, and of its containers.

    The size of a map task is a slot. By default every node has room for one.
    """

    core_mb: int
    transient_mb: int
    am_mb: int
    map_mb: int


def heaps(cluster: Cluster, role: Role) -> Heaps:
    """Return how the pods of a role divide their memory."""
    volume = cluster.spec.core.volume
    in_memory = role is Role.CORE and volume.empty_dir and volume.medium == "Memory"
    return heaps_of_pod(
        role,
        cluster.requests[role].memory_bytes,
        compute=cluster.spec.compute,
        in_memory_bytes=quantity.units(volume.size) if in_memory else 0,
    )


def of(cluster: Cluster) -> Sizes:
    """Return the sizes of a cluster with YARN: the user's, or defaults that fit."""
    core_mb, transient_mb = (heaps(cluster, role).yarn_mb for role in (Role.CORE, Role.TRANSIENT))
    return Sizes(
        core_mb=core_mb,
        transient_mb=transient_mb,
        am_mb=_setting(cluster, AM_MEMORY, min(384, core_mb)),
        map_mb=_setting(cluster, MAP_MEMORY, min(512, core_mb, transient_mb)),
    )


def check(cluster: Cluster) -> None:
    """Refuse a cluster whose daemons have too little memory, or a map beside its ApplicationMaster on a core node."""
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
    whole_nodes_mb = (
        sizes.core_mb if cluster.spec.core.count > 1 else 0,
        sizes.transient_mb if cluster.spec.transient.maximum else 0,
    )
    if map_mb > max(sizes.core_mb - am_mb, *whole_nodes_mb):
        raise ValueError(
            f"no node has {map_mb} MiB for a map beside an ApplicationMaster of {am_mb}: "
            f"raise core.resources.memory, or lower {MAP_MEMORY}"
        )


def _setting(cluster: Cluster, key: str, default: int) -> int:
    text = (cluster.spec.mapreduce.settings or {}).get(key, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= len("2147483647") and int(text) > 0):
        raise ValueError(f'{key} is "{text[:64]}", which is not a number of MiB: correct it')
    return int(text)


def _rounded(size_mb: int) -> int:
    return -(-size_mb // UNIT_MB) * UNIT_MB
