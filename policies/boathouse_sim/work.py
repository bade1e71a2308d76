"""What a task does, and jobs of plain phases.

A task's work is the time it computes, reads, writes and copies when it is alone, and what it moves meanwhile.

Jobs of phases have the simulator's own truth of how long a task runs with how much memory. Times are whole milliseconds
and memory whole MB, as in the format `neutral-cluster-workload/1`: equal inputs give equal bytes, for nothing is
rounded on the way.
"""

import abc
import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping

from boathouse_policies.model import Distance
from boathouse_sim.topology import DISK_MB_PER_S, GIGABIT_MB_PER_S


class PenaltyModel(enum.StrEnum):
    """How a task's run time grows with less than its ideal memory."""

    STEP = "step"
    SAWTOOTH = "sawtooth"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """The truth of a task's run time."""

    model: PenaltyModel = PenaltyModel.STEP  # `sawtooth` for reducers
    factor: float = 1.0  # what a task is slower by when nearly all of its input is spilled; 1 for no penalty

    def run_time_ms(self, duration_ms: int, given_mb: int, ideal_mb: int) -> int:
        """Run time of a task."""
        if given_mb >= ideal_mb:
            return duration_ms
        if self.model is PenaltyModel.STEP:
            return int(duration_ms * self.factor)
        percent = max(1, 100 * given_mb // ideal_mb)
        spilled_share = (math.ceil(100 / percent) - 1) * percent / 100
        return int(duration_ms * (1 + (self.factor - 1) * spilled_share))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Equal tasks of a job. A phase may start once every task of the one before has been placed, or has ended."""

    kind: str  # a stage of the model: `map`, `reduce`, `executor`, `uber`, `probe`, or a name of the workload's own
    tasks: int
    duration_ms: int  # of one task with its ideal memory; their mean, where they differ
    mem_ideal_mb: int  # of one task
    cores: float = 1  # of one task, to the millicore
    penalty: Penalty = Penalty()
    input_bytes: int | None = None  # what one task reads; None where the workload does not say
    counters: tuple[tuple[str, float], ...] = ()  # what each task reports at its end
    when_ended: bool = False  # whether it waits for the end of the phase before, not for its last task to be placed
    durations_ms: tuple[int, ...] = ()  # of each task, where they differ: the truth, of which policies know the mean

    def task_ms(self, index: int) -> int:
        """Return how long a task runs with its ideal memory."""
        return self.durations_ms[index] if self.durations_ms else self.duration_ms


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is submitted at a time, or when another job has ended (then `submit_ms` is None)."""

    id: str  # unique in the workload
    submit_ms: int | None = 0
    after: str | None = None  # the job after whose end it is submitted
    program: str = ""  # jobs of one program treat their input alike; empty for nothing in common with others
    queue: str = "default"
    namespace: str = ""  # whose share of the queue it is charged to; empty where a workload has one tenant


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(Submission):
    """A job of phases, in the order in which they run."""

    phases: tuple[Phase, ...]
    master: Phase | None = None
    """A container that is placed first, asks for the job's tasks after its `duration_ms`, and is held until the job
    ends; None for none. The heartbeat protocol has masters of its own (`Timing`)."""
    probe: Phase | None = None
    """The one task of the job's probing job, for a policy that asks for one; None where nothing can be probed."""
    stated: bool = True  # whether a policy that predicts run times itself is told them all the same

    @property
    def containers(self) -> tuple[Phase, ...]:
        """All that it may ask for."""
        return (*self.phases, *(part for part in (self.master, self.probe) if part is not None))


class App(Submission, abc.ABC):
    """An application with a course of its own, which `boathouse_sim.live.Application` gives it."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def tasks(self) -> int:
        """Containers that it needs at least."""

    @abc.abstractmethod
    def containers(self) -> "Iterable[tuple[str, Container]]":
        """Return each kind of container that it asks for, by name."""


NO_PENALTY = Penalty()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a task's run, one after the other: a map has one, a reducer copies, sorts and reduces.

    The times are those of a task that is alone on its host, on a machine of speed 1, with its ideal memory and CPU and
    its input on its own disk; they add up, as nothing overlaps.
    """

    name: str  # as reports call it: map, shuffle, sort, reduce, task
    cpu_ms: int = 0  # computing, with `cores` busy
    read_ms: int = 0
    write_ms: int = 0  # to the host's disks
    copy_ms: int = 0  # over the network
    pool_ms: int = 0  # writing to a shared pool (`Pool`): the disks of other nodes
    read_mb: float = 0.0
    write_mb: float = 0.0
    copy_mb: float = 0.0
    pool_mb: float = 0.0
    cores: float = 1.0
    pool: str = ""  # its name

    @property
    def work_ms(self) -> int:
        """All of it, alone."""
        return self.cpu_ms + self.read_ms + self.write_ms + self.copy_ms + self.pool_ms


def segment(
    name: str,
    *,
    cpu_s: float = 0.0,
    read_mb: float = 0.0,
    write_mb: float = 0.0,
    copy_mb: float = 0.0,
    pool_mb: float = 0.0,
    cores: float = 1.0,
    pool: str = "",
    disk_mb_per_s: float = DISK_MB_PER_S,
) -> Segment:
    """Make a segment from CPU time and amounts, at the rates of an idle disk and network."""
    return Segment(
        name=name,
        cpu_ms=round(cpu_s * 1000),
        read_ms=round(read_mb / disk_mb_per_s * 1000),
        write_ms=round(write_mb / disk_mb_per_s * 1000),
        copy_ms=round(copy_mb / GIGABIT_MB_PER_S * 1000),
        pool_ms=round(pool_mb / DISK_MB_PER_S * 1000),
        read_mb=read_mb,
        write_mb=write_mb,
        copy_mb=copy_mb,
        pool_mb=pool_mb,
        cores=cores,
        pool=pool,
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What a task asks for, and what it does."""

    mem_mb: int  # its ideal memory
    cores: float = 1  # to the millicore
    segments: tuple[Segment, ...] = ()  # in order; none for what only holds its room (a driver, an executor)
    penalty: Penalty = NO_PENALTY  # what less memory costs: added to the time on disk, it may so be contended

    @property
    def work_ms(self) -> int:
        """All of it, alone."""
        return sum(segment.work_ms for segment in self.segments)

    @property
    def input_mb(self) -> float:
        """What it reads and copies."""
        return sum(segment.read_mb + segment.copy_mb for segment in self.segments)

    def phase(self, kind: str, tasks: int) -> Phase:
        """Return it as a phase of equal tasks: what estimates are made of."""
        return Phase(
            kind=kind,
            tasks=tasks,
            duration_ms=self.work_ms,
            mem_ideal_mb=self.mem_mb,
            cores=self.cores,
            penalty=self.penalty,
            input_bytes=round(self.input_mb * _MB),
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How much longer reading takes when the block is elsewhere; from another host it goes over the network."""

    server: float = 1.0  # on another virtual machine of the same host: its disks are the same
    rack: float = 1.2
    anywhere: float = 1.5

    def factor(self, distance: Distance) -> float:
        """Return the factor; 1 on the node itself."""
        return (1.0, self.server, self.rack, self.anywhere)[distance]


PLAIN_READING = Reading()  # ours: 1 GbE is about as fast as one disk, and shared

ILA_READING = Reading(rack=3.0, anywhere=4.0)  # the ILA paper: rack-local tasks 3×, off-rack 4×


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A capacity that all share, wherever they run: the disks of the core nodes of a dynamic Hadoop cluster."""

    name: str
    mb_per_s: float


def counters(segments: tuple[Segment, ...], *, spilled_mb: float = 0.0, remote: bool = False) -> Mapping[str, float]:
    """Return a runtime's counters at a task's end: CPU seconds and bytes, none of which depend on its neighbours."""
    read = sum(segment.read_mb for segment in segments)
    return {
        "cpu_s": sum(segment.cpu_ms * segment.cores for segment in segments) / 1000,
        "read_bytes": 0.0 if remote else read * _MB,
        "remote_bytes": read * _MB if remote else 0.0,
        "written_bytes": sum(segment.write_mb + segment.pool_mb for segment in segments) * _MB,
        "copied_bytes": sum(segment.copy_mb for segment in segments) * _MB,
        "spilled_bytes": spilled_mb * _MB,
    }


_MB = 1 << 20
