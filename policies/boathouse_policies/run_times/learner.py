"""Estimates of task run times, learned from tasks that succeeded, for policies that look ahead.

What one namespace's jobs teach is not used for another's. For each stage of a program the learner separates runs with
the requested memory from runs with less. With the requested memory, run time grows with a task's input. With less, only
the slowdown is kept, because a task that spills pays about the same whatever amount it lacks (YARN-ME, 2.2).
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Final

from boathouse_policies import model
from boathouse_policies.run_times import runs
from boathouse_policies.yarn_me import penalty

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP_BYTES: Final = 16 << 20
"""Granularity of smaller amounts of memory."""
_LEARNED: Final = frozenset({model.Stage.MAP, model.Stage.REDUCE, model.Stage.UBER})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of a job, and the program it belongs to.

    Attributes:
        job: The job.
        program: `NAMESPACE/HASH`, equal for jobs that run the same program.
        step: The job's step.
        stage: The kind of work.
        ideal_bytes: Memory request of a task.
        least_bytes: Least memory that a task may get; None if it must get all.
        slowdown: How much longer a task takes with less memory, until that is measured.
    """

    job: model.JobId
    program: str
    step: int
    stage: model.Stage
    ideal_bytes: int
    least_bytes: int | None
    slowdown: float

    @property
    def key(self) -> str:
        """Return the stage's key in the dump, the same for all jobs of the program."""
        return f"{self.program}/{self.step}/{self.stage}"


class Learner:
    """Run times of programs."""

    def __init__(self) -> None:
        self._full: runs.Table = {}
        self._less: runs.Table = {}
        self._made: dict[tuple[object, ...], model.Estimates] = {}
        self._out_of_memory: set[tuple[model.JobId, int, model.Stage]] = set()

    def learn(self, stage: Stage, *, seconds: float, input_bytes: float, less: bool) -> None:
        """Learn from a task that succeeded; `less` says that it had less memory than requested."""
        if stage.stage in _LEARNED and 0 < seconds < math.inf:
            runs.add(self._less if less else self._full, stage.key, seconds, input_bytes)

    def out_of_memory(self, stage: Stage) -> None:
        """Give the stage's tasks all their memory from now on: one with less was killed for lack of it."""
        self._out_of_memory.add((stage.job, stage.step, stage.stage))

    def forget(self, job: model.JobId) -> None:
        """Forget a job that ended; what its program taught stays."""
        self._out_of_memory = {entry for entry in self._out_of_memory if entry[0] != job}

    def estimates(self, stage: Stage, input_bytes: float) -> model.Estimates:
        """Return the estimates for a stage's tasks: the same object until they change, because classes are compared.

        Args:
            stage: The stage.
            input_bytes: What one of its tasks reads; 0 where it is not known.
        """
        known = self._full.get(stage.key)
        if known is None:
            return model.UNKNOWN
        seconds, slower_s, least = _rounded(known.mean_s(input_bytes)), 0.0, self._least_bytes(stage)
        if least is not None:
            slower_s = _rounded(self._slower_s(stage, known.mean_s(input_bytes), input_bytes))
        made = (seconds, slower_s, int(input_bytes), stage.ideal_bytes, least)
        if made not in self._made:
            if len(self._made) > runs.PROGRAMS_KEPT:
                self._made.clear()
            plain = model.Fixed(seconds=seconds, read_bytes=int(input_bytes) or None)
            self._made[made] = plain if least is None else _elastic(seconds, slower_s, stage.ideal_bytes, least)
        return self._made[made]

    def _least_bytes(self, stage: Stage) -> int | None:
        return None if (stage.job, stage.step, stage.stage) in self._out_of_memory else stage.least_bytes

    def _slower_s(self, stage: Stage, seconds: float, input_bytes: float) -> float:
        less = self._less.get(stage.key)
        return max(seconds, less.mean_s(input_bytes) if less is not None else seconds * stage.slowdown)

    def dump(self) -> Mapping[str, Any]:
        """Return what was learned as JSON values."""
        return {"full": runs.dump(self._full), "less": runs.dump(self._less)}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump, without the entries of it that are invalid."""
        self._full, self._less = runs.load(state.get("full")), runs.load(state.get("less"))


def _rounded(seconds: float) -> float:
    """Round to two digits, so that a smaller change of an estimate changes nothing."""
    return float(f"{seconds:.1e}")


def _elastic(seconds: float, slower_s: float, ideal: int, least: int) -> penalty.Elastic:
    run_time = penalty.Mapper(ideal_s=seconds, ideal_bytes=ideal, undersized_s=slower_s)
    return penalty.Elastic(run_time, ideal_bytes=ideal, step_bytes=STEP_BYTES, least_share=min(1.0, least / ideal))
