"""How long the tasks of a program take, learnt from those that succeeded: what policies that look ahead go by.

A program is a job's commands, files and image, in a namespace: what one tenant's jobs teach is nothing to another's.
Of each of its stages two kinds of run are kept apart: with the memory that was asked for, and with less. The time of
the former grows with a task's input; of the latter only the slowdown is kept, because a task that spills pays by and
large the same whatever it lacks (YARN-ME, 2.2).
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from boathouse.services.mrjob.job.model import MIB, Job, Stage
from boathouse_policies import model
from boathouse_policies.framework import crowding
from boathouse_policies.yarn_me import penalty
from boathouse_task.contract import TaskType

PROGRAMS_KEPT: Final = 256
NAMESPACE_KEPT: Final = 64
"""Stages of programs of one namespace."""
MAX_SECONDS: Final = 10 * 365 * 86400.0
MAX_BYTES: Final = 2.0**63
STEP_BYTES: Final = 16 << 20
_REMEMBERED: Final = 64
"""Older runs count less: from so many on, each new one takes the place of its share of them."""
_SLASHES: Final = 3
"""Of a key: `NAMESPACE/HASH/STEP/TYPE`."""
_LONGEST_KEY: Final = 128
_LEARNT: Final = frozenset({TaskType.MAP, TaskType.REDUCE, TaskType.UBER})


@dataclasses.dataclass(slots=True, kw_only=True)
class Runs:
    """Sums over runs of one kind; `weight` is their number, bounded."""

    weight: float = 0.0
    seconds: float = 0.0
    input_bytes: float = 0.0

    def add(self, seconds: float, input_bytes: float) -> None:
        """One more run."""
        keep = min(1.0, (_REMEMBERED - 1) / self.weight) if self.weight else 1.0
        self.weight = self.weight * keep + 1
        self.seconds = self.seconds * keep + seconds
        self.input_bytes = self.input_bytes * keep + input_bytes

    def mean_s(self, input_bytes: float) -> float:
        """The time of a task with so much input; the mean where the input is not known."""
        if input_bytes > 0 and self.input_bytes > 0:
            return self.seconds * input_bytes / self.input_bytes
        return self.seconds / self.weight


class Learner:
    """What was learnt of programs."""

    def __init__(self) -> None:
        self._full: dict[str, Runs] = {}
        self._less: dict[str, Runs] = {}
        self._made: dict[tuple[object, ...], model.Estimates] = {}
        self._refused: set[tuple[str, TaskType, int]] = set()

    def learn(
        self, job: Job, task_type: TaskType, step: int, *, seconds: float, input_bytes: float, less: bool
    ) -> None:
        """A task succeeded; `less`: with less memory than it asked for."""
        if task_type not in _LEARNT or not 0 < seconds < math.inf:
            return
        seconds, input_bytes = min(seconds, MAX_SECONDS), min(max(0.0, input_bytes), MAX_BYTES)
        table, key = self._less if less else self._full, _key(job, task_type, step)
        known = table.pop(key, None)
        runs = table[key] = known or Runs()  # now the last used
        runs.add(seconds, input_bytes)
        if known is None:
            _bound(table, job.namespace)

    def too_little(self, job: Job, task_type: TaskType, step: int) -> None:
        """A task with less memory than it asked for was killed for want of it: none of the job's stage gets less."""
        self._refused.add((job.uid, task_type, step))

    def forget(self, job: Job) -> None:
        """The job is over."""
        self._refused = {each for each in self._refused if each[0] != job.uid}

    def estimates(self, job: Job, task_type: TaskType, step: int, input_bytes: float) -> model.Estimates:
        """What is known of a class.

        Args:
            job: The job.
            task_type: The stage.
            step: Its step.
            input_bytes: That one of its tasks reads; 0 where it is not known.
        """
        key = _key(job, task_type, step)
        runs = self._full.get(key)
        if runs is None:
            return model.UNKNOWN
        stage, seconds = job.stage(task_type, step), _rounded(runs.mean_s(input_bytes))
        elastic = stage.min_memory_bytes and (job.uid, task_type, step) not in self._refused
        slower_s = _rounded(self._slower_s(key, stage, runs, input_bytes)) if elastic else 0.0
        made = (seconds, slower_s, int(input_bytes), stage.resources.memory_bytes, stage.min_memory_bytes)
        if made not in self._made:
            if len(self._made) > PROGRAMS_KEPT:
                self._made.clear()
            plain = model.Fixed(seconds=seconds, read_bytes=int(input_bytes) or None)
            self._made[made] = _elastic(stage, seconds, slower_s) if elastic else plain
        return self._made[made]  # the same object while nothing changed: classes are compared

    def _slower_s(self, key: str, stage: Stage, full: Runs, input_bytes: float) -> float:
        seconds = full.mean_s(input_bytes)
        less = self._less.get(key)
        return max(seconds, less.mean_s(input_bytes) if less is not None else seconds * stage.slowdown)

    def dump(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            name: {key: [runs.weight, runs.seconds, runs.input_bytes] for key, runs in table.items()}
            for name, table in (("full", self._full), ("less", self._less))
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump; what has no namespace (an older version's) or cannot be, is left out."""
        self._full, self._less = _loaded(state.get("full")), _loaded(state.get("less"))


def _loaded(dumped: object) -> dict[str, Runs]:
    """A table from JSON values, the last used at the end, bounded as ever."""
    table: dict[str, Runs] = {}
    for key, values in dumped.items() if isinstance(dumped, dict) else ():
        if isinstance(key, str) and key.count("/") == _SLASHES and len(key) <= _LONGEST_KEY and _is_runs(values):
            table[key] = Runs(weight=float(values[0]), seconds=float(values[1]), input_bytes=float(values[2]))
            _bound(table, crowding.group_of(key))
    return table


def _is_runs(values: object) -> TypeGuard[list[float]]:
    """Whether these are a weight, seconds and bytes that runs can have."""
    if not isinstance(values, list) or len(values) != len(dataclasses.fields(Runs)):
        return False
    if not all(isinstance(each, int | float) for each in values):
        return False
    weight, seconds, size = map(float, values)
    return 1 <= weight <= _REMEMBERED and 0 < seconds <= weight * MAX_SECONDS and 0 <= size <= weight * MAX_BYTES


def _bound(table: dict[str, Runs], namespace: str) -> None:
    """Drop what was not used for longest: of the namespace, where it has too many, else of the one with the most."""
    own = [key for key in table if crowding.group_of(key) == namespace]
    if len(own) > NAMESPACE_KEPT:
        del table[own[0]]
    if len(table) > PROGRAMS_KEPT:
        del table[crowding.crowded_out(table)]


def kind(job: Job) -> str:
    """What tells a program from others: `NAMESPACE/HASH`."""
    stages = [(step.mapper.command, step.reducer.command if step.reducer else (), step.combiner) for step in job.steps]
    files = sorted(each.model_dump_json() for each in job.files)
    text = json.dumps([job.image, stages, files], default=str)
    return f"{job.namespace}/{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _key(job: Job, task_type: TaskType, step: int) -> str:
    return f"{kind(job)}/{step}/{task_type}"


def _rounded(seconds: float) -> float:
    """Two digits: estimates that move less than that change nothing."""
    return float(f"{seconds:.1e}")


def _elastic(stage: Stage, seconds: float, slower_s: float) -> penalty.Elastic:
    ideal, least = stage.resources.memory_request_bytes, stage.min_memory_bytes - MIB
    run_time = penalty.Mapper(ideal_s=seconds, ideal_bytes=ideal, undersized_s=slower_s)
    return penalty.Elastic(run_time, ideal_bytes=ideal, step_bytes=STEP_BYTES, least_share=min(1.0, least / ideal))
