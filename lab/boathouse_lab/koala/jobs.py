"""What a dynamic Hadoop cluster is made of and runs, and what is written down of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_sim.work import Container, Segment, Submission

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What tasks of a job do: the truth, unstated in the paper but for what is computed and what is written.

    Attributes:
        name: Of the program.
        map_s_per_mb: CPU of a map, for each MB of input.
        map_output: MB that maps put out for each MB of input.
        reduce_s_per_mb: CPU of a reducer, for each MB that it copies.
        output: MB that reducers write for each MB that they copy.
        start_s: Until a task works: its JVM, and the heartbeat before.
        start_cores: CPU that this takes meanwhile.
    """

    name: str
    map_s_per_mb: float
    map_output: float
    reduce_s_per_mb: float
    output: float
    start_s: float = 2.0
    start_cores: float = 0.3

    def compute(self, name: str, seconds: float) -> Segment:
        """Return the segment of computing, the start included."""
        whole_s = self.start_s + seconds
        return Segment(
            name=name,
            cpu_ms=round(whole_s * 1000),
            cores=(seconds + self.start_cores * self.start_s) / whole_s if whole_s else 0.0,
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopJob:
    """A job of a cluster.

    Attributes:
        id: Unique in its cluster.
        program: What it does.
        maps: Its blocks.
        block_mb: Of its input.
        reduces: At least one.
        submit_ms: Since the cluster took jobs.
    """

    id: str
    program: Program
    maps: int
    block_mb: float
    reduces: int = 1
    submit_ms: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            ValueError: No maps or no reducers.
        """
        if min(self.maps, self.reduces) < 1:
            raise ValueError(f"job {self.id}: it needs maps and reducers, not {self.maps} and {self.reduces}")

    @property
    def share_mb(self) -> float:
        """What each reducer copies."""
        return self.maps * self.block_mb * self.program.map_output / self.reduces


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """Of a node, and how fast a reducer copies.

    Attributes:
        read_mb_per_s: All disks of a node together.
        write_mb_per_s: The same; `Machine.disk_mb_per_s` should be this.
        copy_mb_per_s: Of a reducer's copies, which one node's few streams do not exceed.
    """

    read_mb_per_s: float
    write_mb_per_s: float
    copy_mb_per_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HadoopSpec(Submission):
    """A cluster; `program` names its policy, empty for the profile's.

    Attributes:
        jobs: What it runs; it ends with the last of them.
        core: Nodes that it is made of.
        node: What a node asks for; its segments are not used.
        disks: Rates.
        transient: Nodes without data that it has from the start on, besides (VI.B's static clusters).
        map_slots: Of a node.
        reduce_slots: Of a node.
        replicas: Of each block, of input and output.
        slow_start: Share of a job's maps after whose end its reducers may start.
        boot_ms: From a node's start until it takes tasks.
        linger_ms: How long it lives on when its jobs are over.
        link: The host whose network transient nodes share; empty where each has its own only.
        pipelined: Whether a reducer's output is sent and written at the same time; the paper adds the two times up.
        jitter: Coefficient of variation of what tasks compute, log-normal.
    """

    jobs: tuple[HadoopJob, ...]
    core: int
    node: Container
    disks: Disks
    transient: int = 0
    map_slots: int = 6
    reduce_slots: int = 2
    replicas: int = 3
    slow_start: float = 0.05
    boot_ms: int = 30_000
    linger_ms: int = 0
    link: str = ""
    pipelined: bool = False
    jitter: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            ValueError: No core nodes, jobs or slots.
        """
        if self.core < 1 or not self.jobs or min(self.map_slots, self.reduce_slots) < 1:
            raise ValueError(f"cluster {self.id}: give it core nodes, jobs, and map and reduce slots")

    @property
    def tasks(self) -> int:
        """Nodes that it starts with."""
        return self.core + self.transient

    @property
    def node_slots(self) -> int:
        """Slots of a node."""
        return self.map_slots + self.reduce_slots

    def containers(self) -> Sequence[tuple[str, Container]]:
        """Return its nodes."""
        return (("worker", self.node),)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job that is over.

    Attributes:
        id: Of the job.
        program: Its program's name.
        submitted_ms: When.
        mapped_ms: End of its last map.
        ended_ms: When it ended.
        local_maps: Maps on a node with their block.
        maps: Of all.
    """

    id: str
    program: str
    submitted_ms: int
    mapped_ms: int
    ended_ms: int
    local_maps: int
    maps: int

    @property
    def time_s(self) -> float:
        """Response time."""
        return (self.ended_ms - self.submitted_ms) / 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeRecord:
    """How large a cluster was since a time."""

    at_ms: int
    core: int
    transient: int
