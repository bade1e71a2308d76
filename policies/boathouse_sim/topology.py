"""Where nodes and the blocks of files are, and what nodes share: machines, physical hosts, racks and sites."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from boathouse_policies import model

T = TypeVar("T")
DISK_MB_PER_S = 100.0  # one hard disk, read or written in order
GIGABIT_MB_PER_S = 117.0  # what 1 GbE carries of data


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A physical host: what its virtual machines share."""

    name: str  # as in `Machine.server`
    cores: float  # what all its virtual machines may compute with together: often fewer than they are promised
    disk_mb_per_s: float = DISK_MB_PER_S
    network_mb_per_s: float = GIGABIT_MB_PER_S


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node: a physical machine, or a virtual one on a host."""

    name: str
    cores: float  # what tasks may ask for together, to the millicore
    mem_mb: int
    rack: str = "r0"
    server: str = ""  # the host of a virtual machine; a physical one has disk and network of its own
    site: str = ""  # its zone, as the label `topology.kubernetes.io/zone`
    disk_mb_per_s: float = DISK_MB_PER_S
    network_mb_per_s: float = GIGABIT_MB_PER_S
    speed: float = 1.0  # how fast it computes, relative to what run times were measured on
    stores: bool = True  # whether it holds blocks (a DataNode): transient nodes do not
    labels: tuple[tuple[str, str], ...] = ()  # further ones of the node

    @property
    def host(self) -> Host:
        """The machine as its own host."""
        disk, network = self.disk_mb_per_s, self.network_mb_per_s
        return Host(name=self.name, cores=float(self.cores), disk_mb_per_s=disk, network_mb_per_s=network)


def machines(
    count: int,
    *,
    cores: float,
    mem_mb: int,
    racks: int = 1,
    prefix: str = "n",
    disk_mb_per_s: float = DISK_MB_PER_S,
    network_mb_per_s: float = GIGABIT_MB_PER_S,
    speed: float = 1.0,
) -> list[Machine]:
    """Return equal physical machines, dealt to the racks in turn."""
    digits = len(str(max(count - 1, 0)))
    return [
        Machine(
            name=f"{prefix}{i:0{digits}}",
            cores=cores,
            mem_mb=mem_mb,
            rack=f"r{i % racks}",
            disk_mb_per_s=disk_mb_per_s,
            network_mb_per_s=network_mb_per_s,
            speed=speed,
        )
        for i in range(count)
    ]


def virtual(
    hosts: int,
    *,
    machines_per_host: int,
    cores: int,
    mem_mb: int,
    host_cores: float,
    racks: int = 1,
    disk_mb_per_s: float = DISK_MB_PER_S,
    network_mb_per_s: float = GIGABIT_MB_PER_S,
) -> tuple[list[Machine], list[Host]]:
    """Return equal virtual machines on hosts, which share their cores, and which are dealt to the racks in turn."""
    digits, vm_digits = len(str(hosts - 1)), len(str(machines_per_host - 1))
    names = [f"h{i:0{digits}}" for i in range(hosts)]
    shared = [
        Host(name=name, cores=host_cores, disk_mb_per_s=disk_mb_per_s, network_mb_per_s=network_mb_per_s)
        for name in names
    ]
    nodes = [
        Machine(name=f"{name}v{k:0{vm_digits}}", cores=cores, mem_mb=mem_mb, rack=f"r{i % racks}", server=name)
        for i, name in enumerate(names)
        for k in range(machines_per_host)
    ]
    return nodes, shared


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Equal nodes, dealt to the racks in turn; or machines, each with its own shape and place (`Cluster.of`)."""

    nodes: int
    node_mem_mb: int = 10_000  # of the largest where there are machines
    node_cores: float = 16
    racks: int = 1
    mem_granularity_mb: int = 100  # steps of elastic sizes
    min_mem_fraction: float = 0.1  # the least part of its ideal memory that a task is given
    machines: tuple[Machine, ...] = ()  # the nodes one by one; empty for equal ones
    hosts: tuple[Host, ...] = ()  # of virtual machines, by `Machine.server`; a machine that names none is its own

    @classmethod
    def of(cls, machines: Sequence[Machine], hosts: Sequence[Host] = ()) -> "Cluster":
        """Return a cluster of these machines."""
        return cls(
            nodes=len(machines),
            node_mem_mb=max(machine.mem_mb for machine in machines),
            node_cores=max(machine.cores for machine in machines),
            racks=len({machine.rack for machine in machines}),
            machines=tuple(machines),
            hosts=tuple(hosts),
        )

    def each(self) -> Sequence[Machine]:
        """Return all nodes as machines."""
        if self.machines:
            return self.machines
        return machines(self.nodes, cores=self.node_cores, mem_mb=self.node_mem_mb, racks=self.racks)

    @property
    def total_mem_mb(self) -> int:
        """Memory of all nodes."""
        return sum(machine.mem_mb for machine in self.machines) if self.machines else self.nodes * self.node_mem_mb

    @property
    def total_cores(self) -> float:
        """Cores of all nodes."""
        return sum(machine.cores for machine in self.machines) if self.machines else self.nodes * self.node_cores

    def holds(self, mem_mb: int, cores: float) -> bool:
        """Return whether some node, empty, holds a task of this size."""
        if self.machines:
            return any(mem_mb <= machine.mem_mb and cores <= machine.cores for machine in self.machines)
        return mem_mb <= self.node_mem_mb and cores <= self.node_cores


REPLICAS = 3


class Stores:
    """The nodes that hold blocks.

    BlockPlacementPolicyDefault: the first replica on any node; the second in another rack; the third in the second's
    rack on another node; more of them anywhere. Racks are all that it knows: not hosts of virtual machines. The nodes
    are in the order of their names.
    """

    def __init__(self, nodes: Sequence[model.Node], random: np.random.Generator) -> None:
        if not nodes:
            raise ValueError("no node holds blocks: let some machine have stores=True")
        self._names = [node.name for node in nodes]
        self._rack = {node.name: node.rack or "" for node in nodes}
        self._racks: dict[str, list[model.NodeName]] = {}
        for node in nodes:
            self._racks.setdefault(node.rack or "", []).append(node.name)
        self._random = random

    def file(self, blocks: int, replicas: int = REPLICAS) -> list[tuple[model.NodeName, ...]]:
        """Return the nodes of each block of a new file, whose writer is on none of them."""
        return [self._block(min(replicas, len(self._names))) for _ in range(blocks)]

    def _block(self, replicas: int) -> tuple[model.NodeName, ...]:
        chosen = [self._any(self._names)]
        while len(chosen) < replicas:
            chosen.append(self._next(chosen))
        return tuple(chosen)

    def _next(self, chosen: list[model.NodeName]) -> model.NodeName:
        racks = [self._rack[node] for node in chosen]
        if len(chosen) == 1:
            wanted = [rack for rack in self._racks if rack != racks[0]]
        else:
            wanted = [racks[1]] if len(chosen) == 2 else []  # noqa: PLR2004  the third follows the second
        if wanted and (free := [node for node in self._racks[self._any(wanted)] if node not in chosen]):
            return self._any(free)
        return self._any([node for node in self._names if node not in chosen])

    def _any(self, names: Sequence[T]) -> T:
        return names[int(self._random.integers(len(names)))]


def distance(here: model.Node, there: model.Node) -> model.Distance:
    """Return how far one node is from another."""
    if here.name == there.name:
        return model.Distance.NODE
    if here.server is not None and here.server == there.server:
        return model.Distance.SERVER
    if here.rack is not None and here.rack == there.rack:
        return model.Distance.RACK
    return model.Distance.ANYWHERE
