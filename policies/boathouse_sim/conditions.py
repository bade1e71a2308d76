"""What a simulation has beside tasks that last a fixed time: contention, reading, outages, reports.

Contention is how tasks on one host slow each other down: the simulator's own truth, which no policy is told. A policy
may fit what model it likes to the run times that come of it (ILA fits an exponential of utilisations). So the truth is
deliberately of another family: saturation with thresholds, in numbers of streams and in load over capacity, with a
ceiling. It is built on facts the ILA paper measured: CPU is flat until 800 % of 10 cores are busy, input and output
slow down faster than linearly with the number of neighbours, and whole tasks by 1.5 to 7 times.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from boathouse_sim.work import PLAIN_READING, Pool, Reading

if TYPE_CHECKING:
    from boathouse_policies.model import FloatVector

CPU, DISK, NETWORK, POOL = range(4)
"""Columns of load, capacity and slowdown."""

KINDS = 4


class Contention(Protocol):
    """What sharing a host costs."""

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:
        """Return by what factor each kind of work is slower than alone.

        Args:
            load: What all tasks of a host use when nobody is in their way, shape [hosts, 4]: cores, MB/s of disks, MB/s
                of network, and MB/s of the pool (of which the last is the same for all who use it).
            capacity: What there is of it, same shape.
            streams: Tasks that use the disks, shape [hosts].

        Returns:
            Factors, at least 1, shape [hosts, 4].
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """The default truth.

    * CPU: none until the load is `cpu_flat` of the cores, then (load / (flat · cores)) ** `cpu_power`: time is shared,
      and switching costs.
    * Disks: load / capacity, once above 1, where each stream beyond the first costs `seek` of the capacity.
    * Network and pools: load / capacity, once above 1.

    Attributes:
        cpu_flat: The paper's 800 % of 10 cores.
        cpu_power: Above 1: worse than sharing alone (ours).
        seek: Ours; 6 equal streams that fill a disk together are 1.75 times slower than in order.
        ceiling: The most of CPU and disks; the paper saw 7.
    """

    cpu_flat: float = 0.8
    cpu_power: float = 1.5
    seek: float = 0.15
    ceiling: float = 7.0

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
    """A node is away for a while: its tasks and map output are lost, its blocks come back with it.

    Attributes:
        node: Its name.
        from_s: Since when.
        to_s: When it comes back; None for never.
    """

    node: str
    from_s: float
    to_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """Which nodes fail, and when.

    Attributes:
        given: These.
        mean_time_to_failure_s: And each node anew after exponential times of this mean; 0 for none.
        mean_time_to_recovery_s: How long it is then away, exponentially too.
    """

    given: tuple[Outage, ...] = ()
    mean_time_to_failure_s: float = 0.0
    mean_time_to_recovery_s: float = 300.0


class RunTimes(enum.StrEnum):
    """What policies know of run times."""

    EXACT = "exact"
    """The workload's own, before a job's first task."""
    LEARNED = "learned"
    """What the operator's learner makes of the program's tasks that ended (`boathouse_policies.run_times`)."""
    NOTHING = "nothing"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What holds for a whole simulation.

    Attributes:
        contention: What sharing a host costs; None for nothing.
        reading: What remote input costs.
        pools: Capacities that all hosts share.
        outages: Nodes that fail.
        jitter: Coefficient of variation of run times, log-normal with mean 1, drawn for each attempt.
        launch_ms: From a task's placement until it starts.
        suspend_ms: From the decision to suspend until the CPU is free.
        resume_ms: From a resumed task's having its CPU again until its work goes on.
        tick_ms: How often controllers are asked, where the profile has any.
        preempt_ms: How long a job's maps may wait while its own reducers hold room, before one of them is preempted.
        records: Whether to keep a record of each task.
        run_times: What policies know of run times.
        misjudged: With `LEARNED`: the learner gets each program's run times times a factor between 1 over this
            and this, drawn log-uniformly for each program; 1 for as they were.
        spills_load_disks: Whether what tasks with less memory spill loads the disk of their host.
        reads_load_sources: Whether what reads a block of another host loads that one's disks and network, and waits for
            them.
    """

    contention: Contention | None = None
    reading: Reading = PLAIN_READING
    pools: tuple[Pool, ...] = ()
    outages: Outages = Outages()
    jitter: float = 0.0
    launch_ms: int = 0
    suspend_ms: int = 500
    resume_ms: int = 0
    tick_ms: int = 5000
    preempt_ms: int = 15_000
    records: bool = False
    run_times: RunTimes = RunTimes.EXACT
    misjudged: float = 1.0
    spills_load_disks: bool = False
    reads_load_sources: bool = False


PLAIN = Conditions()
