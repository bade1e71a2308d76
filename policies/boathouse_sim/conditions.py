"""What a simulation has beside tasks that last a fixed time: contention, reading, outages, reports.

Contention is how tasks on one host slow each other down: the simulator's own truth, which no policy is told. A policy
may fit what model it likes to the run times that come of it (ILA fits an exponential of utilisations). So the truth is
deliberately of another family: saturation with thresholds, in numbers of streams and in load over capacity, with a
ceiling. It is built on facts the ILA paper measured: CPU is flat until 800 % of 10 cores are busy, input and output
slow down faster than linearly with the number of neighbours, and whole tasks by 1.5 to 7 times.
"""

import dataclasses
import enum
from typing import Protocol

import numpy as np

from boathouse_policies.model import FloatVector
from boathouse_sim.work import PLAIN_READING, Pool, Reading

CPU, DISK, NETWORK, POOL = range(4)  # columns of load, capacity and slowdown

KINDS = 4


class Contention(Protocol):
    """What sharing a host costs."""

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:
        """Return by what factor, at least 1, each kind of work is slower than alone, shape [hosts, 4].

        `load` is what all tasks of a host use when nobody is in their way: cores, MB/s of disks, MB/s of network, and
        MB/s of the pool (which is the same for all who use it). `capacity` is what there is of it, same shape, and
        `streams` the tasks that use the disks, shape [hosts].
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The default truth; docs/simulator.md has its formulas."""

    cpu_flat: float = 0.8  # the paper's 800 % of 10 cores
    cpu_power: float = 1.5  # above 1: worse than sharing alone (ours)
    seek: float = 0.15  # ours; 6 equal streams that fill a disk together are 1.75 times slower than in order
    ceiling: float = 7.0  # the most of CPU and disks; the paper saw 7

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:
        """Return the slowdown; see the class."""
        ratio = load / capacity
        ratio[:, CPU] = np.maximum(ratio[:, CPU] / self.cpu_flat, 1.0) ** self.cpu_power
        ratio[:, DISK] *= 1.0 + self.seek * np.maximum(streams - 1.0, 0.0)
        ratio[:, :NETWORK] = np.minimum(ratio[:, :NETWORK], self.ceiling)
        slow: FloatVector = np.maximum(ratio, 1.0)
        return slow


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A node is away for a while: its tasks and map output are lost, its blocks come back with it."""

    node: str
    from_s: float
    to_s: float | None = None  # None for never


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """Which nodes fail, and when."""

    given: tuple[Outage, ...] = ()
    mean_time_to_failure_s: float = 0.0  # and each node anew after exponential times of this mean; 0 for none
    mean_time_to_recovery_s: float = 300.0  # how long it is then away, exponentially too


class RunTimes(enum.StrEnum):
    """What policies know of run times."""

    EXACT = "exact"  # the workload's own, before a job's first task
    LEARNED = "learned"
    """What the operator's learner makes of the program's tasks that ended (`boathouse_policies.run_times`)."""
    NOTHING = "nothing"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What holds for a whole simulation."""

    contention: Contention | None = None  # what sharing a host costs; None for nothing
    reading: Reading = PLAIN_READING  # what remote input costs
    pools: tuple[Pool, ...] = ()  # capacities that all hosts share
    outages: Outages = Outages()
    jitter: float = 0.0  # coefficient of variation of run times, log-normal with mean 1, drawn for each attempt
    launch_ms: int = 0  # from a task's placement until it starts
    suspend_ms: int = 500  # from the decision to suspend until the CPU is free
    resume_ms: int = 0  # from a resumed task's having its CPU again until its work goes on
    tick_ms: int = 5000  # how often controllers are asked, where the profile has any
    preempt_ms: int = 15_000  # how long maps may wait while reducers of their job hold room, before one is preempted
    records: bool = False  # whether to keep a record of each task
    run_times: RunTimes = RunTimes.EXACT
    misjudged: float = 1.0
    """With `LEARNED`: the learner gets each program's run times times a factor between 1 over this and this, drawn
    log-uniformly for each program; 1 for as they were."""
    spills_load_disks: bool = False  # whether what tasks with less memory spill loads the disk of their host
    reads_load_sources: bool = False  # whether reading another host's block loads its disks and network, and waits


PLAIN = Conditions()
