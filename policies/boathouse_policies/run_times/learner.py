"""Estimates of task run times, learned from tasks that succeeded, for policies that look ahead.

What one namespace's jobs teach is not used for another's. For each stage of a program the learner separates runs with
the requested memory from runs with less. With the requested memory, run time grows with a task's input (`fit`). With
less:

* A map that spills pays about the same whatever memory it lacks, so only the slowdown is kept (YARN-ME, 2.2).
* A reduce pays for the bytes that it spills (2.3): the rate is the program's own after `LEAST_RUNS` runs with less
  memory, before that half of the rate at which tasks of its namespace wrote and read spills. Until any was measured, it
  pays a fixed slowdown as well. Its input is the mean of the program's earlier runs.

No task gets less memory than its program's commands used at their peak, nor as little as one of its tasks was killed
with.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import programs
from boathouse_policies.run_times import fit
from boathouse_policies.yarn_me import penalty

STEP_BYTES: Final = 16 << 20  # granularity of smaller amounts of memory
BUFFER_SHARE: Final = 0.375  # part of a reduce's memory beyond `FIXED_BYTES` that holds map output: of half of it, 75 %
FIXED_BYTES: Final = 48 << 20  # memory that the task runtime needs for itself
COMMAND_SHARE: Final = 2.2
"""Memory of a task beyond `FIXED_BYTES` over that of its command: the buffer has the other half, and 10 % are spare."""
FLOOR_BYTES: Final = 64 << 20  # how much more memory than a killed task had is the least for the program's later tasks
NAMESPACES_KEPT: Final = 64
"""Namespaces whose rate of spills is kept; the one that measured none for longest is forgotten."""
LEAST_RUNS: Final = 5  # runs with less memory after which a program's own rate of spills counts
_NEWEST_WEIGHT: Final = 0.1  # weight of the newest figure in a running mean
_LEAST_S: Final = 1e-3  # least time that the spills of a task count for
_LEAST_SHARE: Final = 0.1  # least part of the measured run time that is left when spills at full memory are taken off
_LEARNED: Final = frozenset({model.Stage.MAP, model.Stage.REDUCE, model.Stage.UBER, model.Stage.EXECUTOR})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of a job, and the program it belongs to."""

    job: model.JobId
    program: str  # `NAMESPACE/HASH`, equal for jobs that run the same program
    step: int
    stage: model.Stage
    ideal_bytes: int  # memory request of a task
    least_bytes: int | None  # least memory that a task may get; None if it must get all
    slowdown: float  # how much longer a task takes with less memory, until that is measured

    @property
    def key(self) -> str:
        """Return the stage's key in the dump, the same for all jobs of the program."""
        return f"{self.program}/{self.step}/{self.stage}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """What a task did with its memory, and the peak memory of its command; 0 for what was not measured."""

    memory_bytes: int = 0
    spilled_bytes: float = 0.0
    spill_bytes_per_s: float = 0.0
    peak_bytes: float = 0.0


_UNMEASURED: Final = MemoryUse()


class Learner:
    """Run times of programs, and the mean share by which estimates for tasks with less memory were off, if any."""

    def __init__(self) -> None:
        self.error: float | None = None
        self._full, self._less = fit.Table(fit.Runs), fit.Table(fit.Runs)
        self._spills = fit.Table(fit.Sums)  # of tasks with less memory: bytes spilled, and how much longer they ran
        self._peaks, self._floors = fit.Maxima(), fit.Maxima()
        self._spill_rates: programs.Programs[float] = programs.Programs(NAMESPACES_KEPT)
        self._made: dict[tuple[object, ...], model.Estimates] = {}
        self._out_of_memory: set[tuple[model.JobId, int, model.Stage]] = set()

    # Learning

    def learn(
        self, stage: Stage, *, seconds: float, input_bytes: float, less: bool, used: MemoryUse = _UNMEASURED
    ) -> None:
        """Learn from a task that succeeded; an input of 0 is not known."""
        if stage.stage not in _LEARNED or not 0 < seconds < math.inf:
            return
        if less:
            self._learn_less(stage, seconds, input_bytes, used)
        (self._less if less else self._full).add(stage.key, seconds, input_bytes)
        if 0 < used.spill_bytes_per_s < math.inf:
            namespace, bounded = programs.group_of(stage.key), min(used.spill_bytes_per_s, fit.MAX_BYTES)
            self._spill_rates.put(namespace, _mean(self._spill_rates.get(namespace), bounded))
        if used.peak_bytes > 0:
            self._peaks.raise_to(stage.key, used.peak_bytes)

    def _learn_less(self, stage: Stage, seconds: float, input_bytes: float, used: MemoryUse) -> None:
        known, expected = self._full.get(stage.key), self.estimates(stage, input_bytes)
        if known is None or not used.memory_bytes:
            return
        if isinstance(expected, penalty.Elastic):
            self.error = _mean(self.error, abs(expected.run(used.memory_bytes)[0] / seconds - 1.0))
        if 0 < used.spilled_bytes < math.inf:
            longer_s = max(seconds - known.estimate(input_bytes).mean_s, _LEAST_S)
            self._spills.add(stage.key, longer_s, used.spilled_bytes)

    def out_of_memory(self, stage: Stage, memory_bytes: int = 0) -> None:
        """Raise a program's floor: a task with less memory was killed for want of it. The job's others get all."""
        self._out_of_memory.add((stage.job, stage.step, stage.stage))
        if memory_bytes:
            self._floors.raise_to(stage.key, memory_bytes + FLOOR_BYTES)

    def forget(self, job: model.JobId) -> None:
        """Forget a job that ended; what its program taught stays."""
        self._out_of_memory = {entry for entry in self._out_of_memory if entry[0] != job}

    # Estimates

    def estimates(self, stage: Stage, input_bytes: float) -> model.Estimates:
        """Return the estimates for a stage's tasks: the same object until they change, because classes are compared."""
        if (known := self._full.get(stage.key)) is None:
            return model.UNKNOWN
        estimate, least = known.estimate(input_bytes), self._least_bytes(stage)
        seconds, sigma_s = _rounded(estimate.mean_s), _rounded(estimate.deviation_s, digits=1)
        run_time = None if least is None else self._run_time(stage, known, seconds, input_bytes)
        made = (seconds, sigma_s, run_time, int(input_bytes), stage.ideal_bytes, least)
        if made not in self._made:
            if len(self._made) > fit.PROGRAMS_KEPT:
                self._made.clear()
            plain = model.Fixed(seconds=seconds, read_bytes=int(input_bytes) or None, sigma_s=sigma_s)
            elastic = run_time and _elastic(run_time, stage.ideal_bytes, least or 0, sigma_s)
            self._made[made] = elastic or plain
        return self._made[made]

    def _least_bytes(self, stage: Stage) -> int | None:
        if stage.least_bytes is None or (stage.job, stage.step, stage.stage) in self._out_of_memory:
            return None
        peak, floor = self._peaks.get(stage.key), self._floors.get(stage.key, 0.0)
        of_command = 0.0 if peak is None else FIXED_BYTES + COMMAND_SHARE * peak
        least = max(stage.least_bytes, math.ceil(max(floor, of_command)))
        return least if least < stage.ideal_bytes else None

    def _run_time(self, stage: Stage, known: fit.Runs, seconds: float, input_bytes: float) -> penalty.RunTime:
        rate, size = self._cost_rate(stage), _rounded(input_bytes or known.mean_bytes)
        if stage.stage is model.Stage.REDUCE and rate is not None and size > 0:
            return _reducer(seconds, size, rate, stage.ideal_bytes)
        less, spills = self._less.get(stage.key), self._spills.get(stage.key)
        slower_s = seconds * stage.slowdown if less is None else less.estimate(input_bytes).mean_s
        return penalty.Mapper(
            ideal_s=seconds,
            ideal_bytes=stage.ideal_bytes,
            undersized_s=_rounded(max(seconds, slower_s)),
            output_bytes=0.0 if spills is None else _rounded(spills.mean_bytes),
        )

    def _cost_rate(self, stage: Stage) -> float | None:
        """Return how many bytes a task spills in a second that it runs longer; None while no spill was measured."""
        if (own := self._spills.get(stage.key)) is not None and own.weight >= LEAST_RUNS:
            return _rounded(own.input_bytes / own.seconds)
        rate = self._spill_rates.get(programs.group_of(stage.key))
        return None if rate is None else _rounded(rate / 2)  # what is written is read again

    # State

    def dump(self) -> Mapping[str, Any]:
        """Return what was learned as JSON values."""
        return {
            "full": self._full.dump(),
            "less": self._less.dump(),
            "spills": self._spills.dump(),
            "peaks": dict(self._peaks),
            "floors": dict(self._floors),
            "rates": dict(self._spill_rates),
            "error": self.error,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump, without the entries of it that are invalid.

        The rate of spills that earlier versions had of all namespaces is not taken over.
        """
        self._full, self._less = (fit.Table(fit.Runs, state.get(name)) for name in ("full", "less"))
        self._spills = fit.Table(fit.Sums, state.get("spills"))
        self._peaks, self._floors = (fit.Maxima(state.get(name)) for name in ("peaks", "floors"))
        self.error = _number(state.get("error"))
        rates = state.get("rates")
        for namespace, dumped in rates.items() if isinstance(rates, dict) else ():
            if (rate := _number(dumped)) is not None:
                self._spill_rates.put(str(namespace), rate)


def _rounded(number: float, digits: int = 2) -> float:
    """Round to two digits, so that a smaller change of an estimate changes nothing."""
    return float(f"{number:.{digits - 1}e}")


def _mean(before: float | None, news: float) -> float:
    return news if before is None else before + _NEWEST_WEIGHT * (news - before)


def _number(dumped: object) -> float | None:
    return float(dumped) if isinstance(dumped, int | float) and 0 < dumped < math.inf else None


def _reducer(seconds: float, size: float, rate: float, ideal: int) -> penalty.Reducer:
    """Return a reduce that takes so long with all its memory, spills of its input included."""
    reducer = penalty.Reducer(
        ideal_s=seconds, input_bytes=size, disk_bytes_per_s=rate, buffer_share=BUFFER_SHARE, fixed_bytes=FIXED_BYTES
    )
    spills_s = float(reducer.spilled_bytes(np.array(float(ideal)))) / rate
    return dataclasses.replace(reducer, ideal_s=max(seconds - spills_s, _LEAST_SHARE * seconds))


def _elastic(run_time: penalty.RunTime, ideal: int, least: int, sigma_s: float) -> penalty.Elastic:
    return penalty.Elastic(
        run_time, ideal_bytes=ideal, step_bytes=STEP_BYTES, least_share=min(1.0, least / ideal), sigma_s=sigma_s
    )
