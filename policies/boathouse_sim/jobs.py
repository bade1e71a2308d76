"""What jobs of plain phases are, and the simulator's own truth of how long a task runs with how much memory.

Times are whole milliseconds and memory whole MB, as in the format `neutral-cluster-workload/1`: equal inputs give equal
bytes, for nothing is rounded on the way.
"""

from __future__ import annotations

import dataclasses
import enum
import math


class PenaltyModel(enum.StrEnum):
    """How a task's run time grows with less than its ideal memory."""

    STEP = "step"
    SAWTOOTH = "sawtooth"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """The truth of a task's run time.

    Attributes:
        model: `step` for maps, `sawtooth` for reducers.
        factor: What a task is slower by when nearly all of its input is spilled; 1 for no penalty.
    """

    model: PenaltyModel = PenaltyModel.STEP
    factor: float = 1.0

    def run_time_ms(self, duration_ms: int, given_mb: int, ideal_mb: int) -> int:
        """Run time of a task.

        Args:
            duration_ms: With its ideal memory.
            given_mb: What it was given, above 0.
            ideal_mb: Its ideal memory.
        """
        if given_mb >= ideal_mb:
            return duration_ms
        if self.model is PenaltyModel.STEP:
            return int(duration_ms * self.factor)
        percent = max(1, 100 * given_mb // ideal_mb)
        spilled_share = (math.ceil(100 / percent) - 1) * percent / 100
        return int(duration_ms * (1 + (self.factor - 1) * spilled_share))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Equal tasks of a job. A phase may start once every task of the one before has been placed, or has ended.

    Attributes:
        kind: A stage of the model: `map`, `reduce`, `executor`, `uber`, `probe`, or a name of the workload's own.
        tasks: How many.
        duration_ms: Of one task with its ideal memory; their mean, where they differ.
        mem_ideal_mb: Memory that one task wants.
        cores: Cores of one task, to the millicore.
        penalty: What less memory costs.
        input_bytes: What one task reads; None where the workload does not say.
        counters: What each task reports at its end.
        when_ended: Whether it waits for the end of the phase before, rather than for its last task to be placed.
        durations_ms: Of each task by its index, where they differ: the truth, of which policies know the mean.
    """

    kind: str
    tasks: int
    duration_ms: int
    mem_ideal_mb: int
    cores: float = 1
    penalty: Penalty = Penalty()
    input_bytes: int | None = None
    counters: tuple[tuple[str, float], ...] = ()
    when_ended: bool = False
    durations_ms: tuple[int, ...] = ()

    def task_ms(self, index: int) -> int:
        """Return how long a task runs with its ideal memory."""
        return self.durations_ms[index] if self.durations_ms else self.duration_ms


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What is submitted at a time, or when another job has ended (then `submit_ms` is None).

    Attributes:
        id: Unique in the workload.
        submit_ms: When it is submitted.
        after: The job after whose end it is submitted.
        program: What runs: jobs of one program treat their input alike. Empty for nothing in common with others.
        queue: Its queue.
        namespace: Whose share of the queue it is charged to; empty where a workload has one tenant.
    """

    id: str
    submit_ms: int | None = 0
    after: str | None = None
    program: str = ""
    queue: str = "default"
    namespace: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec(Submission):
    """A job of phases.

    Attributes:
        phases: In the order in which they run.
        master: A container that is placed first, asks for the job's tasks after its `duration_ms`, and is held until
            the job ends; None for none. The heartbeat protocol has masters of its own (`Timing`).
        probe: The one task of the job's probing job, for a policy that asks for one; None where nothing can be probed.
        stated: Whether a policy that predicts run times itself is told them all the same.
    """

    phases: tuple[Phase, ...]
    master: Phase | None = None
    probe: Phase | None = None
    stated: bool = True

    @property
    def containers(self) -> tuple[Phase, ...]:
        """All that it may ask for."""
        return (*self.phases, *(part for part in (self.master, self.probe) if part is not None))
