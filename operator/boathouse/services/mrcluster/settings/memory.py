"""How the memory of a pod is divided among its containers, and what of it YARN offers. Pure."""

import dataclasses
from collections.abc import Mapping
from typing import Final

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster import daemons
from boathouse.services.mrcluster.daemons import Daemon

MIB: Final = 1024 * 1024
UNIT_MB: Final = 64
"""YARN's minimum allocation: sizes of containers are multiples of it."""
REFRESH_MIB: Final = 16
"""Requested by the container `refresh`, which seldom runs a command. For that moment its limit is higher."""
AGENT_MIB: Final = 48
_OFF_HEAP_MIB: Final = 128
"""Metaspace, threads, code and buffers of a JVM with a small heap."""
_LEAST_HEAP_MIB: Final = 192
_MOST_HEAP_MIB: Final = 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of a daemon in MiB.

    Attributes:
        limit_mib: Request and limit of its container.
        heap_mib: Of its JVM.
    """

    limit_mib: int
    heap_mib: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Heaps:
    """The memory of a pod.

    Attributes:
        daemons: By daemon, in the order of the containers.
        yarn_mb: What a NodeManager offers to containers of applications; 0 without one.
    """

    daemons: Mapping[Daemon, Memory]
    yarn_mb: int = 0


def heaps(role: Role, limit_bytes: int, *, compute: bool = True, in_memory_bytes: int = 0) -> Heaps:
    """Return how the pod of a role divides its memory.

    Args:
        role: Master, core or transient.
        limit_bytes: Memory of the pod.
        compute: Whether the cluster has YARN.
        in_memory_bytes: Size of a core node's volume if it is in memory, which counts for its DataNode's container.

    Raises:
        ValueError: The daemons need more.
    """
    limit_mib = limit_bytes // MIB
    heap_mib = min(max(limit_mib // 10, _LEAST_HEAP_MIB), _MOST_HEAP_MIB)
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
    others = (daemons.RESOURCE_MANAGER, daemons.HISTORY) if compute else ()
    taken_mib = REFRESH_MIB + AGENT_MIB + len(others) * small.limit_mib
    least_mib = taken_mib + 2 * (_LEAST_HEAP_MIB + _OFF_HEAP_MIB)
    if limit_mib < least_mib:
        raise ValueError(f"master.resources.memory is {limit_mib} MiB, less than the daemons need: set {least_mib}Mi")
    half_mib = (limit_mib - taken_mib) // 2
    name_node, checkpoint = _single(limit_mib - taken_mib - half_mib), _single(half_mib)
    return Heaps(daemons={daemons.NAME_NODE: name_node, daemons.CHECKPOINT: checkpoint, **dict.fromkeys(others, small)})


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
