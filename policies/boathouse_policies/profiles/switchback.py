"""A guard that also tries: each part is on and off in blocks of time, and jobs' slowdowns say whether it is worth it.

The guard measures each decision against its alternative. What a decision does to other jobs it only predicts. With a
switchback, time has pairs of blocks; a hash says in which block of a pair a part acts. A job counts in the block in
which it was submitted, and its slowdown is

    y = ln(time from submission to end / run time alone),

where the run time alone is the sum over its stages of the longest task; applications, whose run times are not known,
have 1 s there. From y the mean of the program's earlier jobs is subtracted. Of each pair and namespace

    D = mean y of the block with the part - mean y of the block without it,    r = -tanh(STEEPNESS · D)

is added to the guard's bet against the part for this namespace (`guard.Record`). If a part has no effect, the hash
makes D and -D equally probable, whatever the load: the bet is a martingale, and a false alarm as improbable as for a
program. Jobs that last into the next block blur D, so blocks should be several times as long as most jobs.

Blocks are the same in all namespaces, because what a part frees for one is used by others. Each namespace has a bet of
its own, so that no tenant switches a part for others by what its jobs do.

Source: switchback experiments, I. Bojinov, D. Simchi-Levi, J. Zhao, "Design and Analysis of Switchback Experiments",
Management Science 69 (2023).
"""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from boathouse_policies import model
from boathouse_policies.profiles.guard import ALL_PROGRAMS, PROGRAMS_KEPT, Effect, Guard, Off, Part

STEEPNESS: Final = 5.0
"""A part that makes jobs take 1.1 times as long has r = -0.44; single jobs of far longer times count little more."""
_RETRY_BLOCKS: Final = 100
"""A part that was switched off tries again after so many blocks; after the next time it is twice as many."""
_KEPT: Final = 0.9  # weight of the mean so far when a program's next job is added to it
_MOST: Final = math.log(10.0)  # bound of a difference in the seconds that are reported


class _Trial(NamedTuple):
    job: model.Job
    alone_s: float | None


@dataclasses.dataclass(slots=True)
class _Jobs:
    """The jobs of a namespace that were submitted in one block."""

    count: int = 0  # those that ended
    slowdowns: float = 0.0  # sum of their logarithms, less their programs' means
    time_s: float = 0.0  # sum from submission to end

    def add(self, slowdown: float, time_s: float) -> None:
        """Add a job."""
        self.count, self.slowdowns, self.time_s = self.count + 1, self.slowdowns + slowdown, self.time_s + time_s


class Switchback(Guard):
    """A guard whose parts act in one block, of this length, of each pair only."""

    def __init__(self, block_s: float) -> None:
        super().__init__()
        # What each part did to the time of the jobs in blocks with it, by the blocks without it. A decision is a pair
        # of blocks in a namespace.
        self.in_blocks, self._block_s = dict.fromkeys(Part, Effect()), block_s
        self._open = 0  # the first block whose pair is not judged
        self._trials: dict[model.JobId, _Trial] = {}
        self._usual: dict[tuple[str, str, bool], float] = {}  # means of y, by namespace and program
        self._blocks: dict[int, dict[str, _Jobs]] = {}  # by block and namespace

    def allows(self, part: Part, job: model.Job, now_s: float) -> bool:
        """Return whether a part may act for a job: in this block, in its namespace, and for its program."""
        is_off = now_s < self.record_of((part, job.namespace, ALL_PROGRAMS)).off_until_s
        return acts_in(part, int(now_s // self._block_s)) and not is_off and super().allows(part, job, now_s)

    def off(self, job: model.Job, now_s: float) -> Sequence[Off]:
        """Return the parts that do not act for a job because they did harm, not those that pause for a block."""
        records = [(part, self.record_of((part, job.namespace, ALL_PROGRAMS))) for part in Part]
        own = [Off(part, one.off_until_s, one.harm, in_blocks=True) for part, one in records if now_s < one.off_until_s]
        named = {off.part for off in own}
        return [*own, *(off for off in super().off(job, now_s) if off.part not in named)]

    def observe(self, event: model.Event) -> None:
        """Count the slowdown of a job that ended, and judge the parts once a pair of blocks is over."""
        super().observe(event)
        open_ = (int(event.now_s // self._block_s) - 1) // 2 * 2  # a pair has a block more, for its jobs to end
        if open_ > self._open:
            self._open = open_
            self._judge()
        if isinstance(event, model.Submitted):
            if event.job.probe_of is None and self._block_of(event.job) >= self._open:
                self._trials[event.job.id] = _Trial(event.job, alone_s(event.classes))
        elif isinstance(event, model.Ended) and (trial := self._trials.pop(event.job, None)) and event.succeeded:
            self._count(trial, event.now_s)

    def _block_of(self, job: model.Job) -> int:
        return int(job.submitted_s // self._block_s)

    def _count(self, trial: _Trial, now_s: float) -> None:
        job, time_s = trial.job, now_s - trial.job.submitted_s
        if time_s <= 0:
            return
        slowdown = math.log(time_s / (trial.alone_s or 1.0))
        key = job.namespace, job.kind or job.name, trial.alone_s is not None
        usual = self._usual.pop(key, None)
        self._usual[key] = slowdown if usual is None else _KEPT * usual + (1.0 - _KEPT) * slowdown
        if len(self._usual) > PROGRAMS_KEPT:
            del self._usual[next(iter(self._usual))]
        if usual is not None:
            jobs = self._blocks.setdefault(self._block_of(job), {}).setdefault(job.namespace, _Jobs())
            jobs.add(slowdown - usual, time_s)

    def _judge(self) -> None:
        """Bet on the pairs before the open block; jobs of theirs that have not ended have the time until now."""
        now_s = (self._open + 1) * self._block_s
        for trial in [trial for trial in self._trials.values() if self._block_of(trial.job) < self._open]:
            self._count(self._trials.pop(trial.job.id), now_s)
        for pair in sorted({block // 2 for block in self._blocks if block < self._open}):
            halves = [self._blocks.pop(2 * pair + half, {}) for half in (0, 1)]
            for part in Part:
                acting, paused = halves if acts_in(part, 2 * pair) else halves[::-1]
                for namespace in sorted(acting.keys() & paused.keys()):
                    self._compare(part, namespace, acting[namespace], paused[namespace], now_s)

    def _compare(self, part: Part, namespace: str, acting: _Jobs, paused: _Jobs, now_s: float) -> None:
        difference = acting.slowdowns / acting.count - paused.slowdowns / paused.count
        saved_s = acting.time_s * math.expm1(-max(-_MOST, min(_MOST, difference)))
        self.in_blocks[part] = self.in_blocks[part].plus(0.0, saved_s)
        worth = -math.tanh(STEEPNESS * difference)
        key, retry_s = (part, namespace, ALL_PROGRAMS), _RETRY_BLOCKS * self._block_s
        self.bet(key, worth, now_s, Effect(1, 0.0, saved_s), retry_s=retry_s)


@functools.lru_cache(64)
def acts_in(part: Part, block: int) -> bool:
    """Return whether a part acts in a block, by its number: in one of each pair, which a hash selects."""
    return hashlib.blake2b(f"{part}/{block // 2}".encode(), digest_size=1).digest()[0] % 2 == block % 2


def alone_s(classes: Iterable[model.TaskClass]) -> float | None:
    """Return what a job takes alone, in seconds: of each stage its longest task; None if no run time is known."""
    stages: dict[model.Stage, float] = {}
    for task_class in classes:
        seconds = task_class.estimates.duration_s(task_class.resources)
        if seconds is not None and 0 < seconds < math.inf:
            stages[task_class.stage] = max(seconds, stages.get(task_class.stage, 0.0))
    return sum(stages.values()) or None
