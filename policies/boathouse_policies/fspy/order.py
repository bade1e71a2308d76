"""The queues of FSPY as an order of jobs (FSPY, III.C and Figure 1).

Whose turn it is, the first group that has somebody:

| group | who | order within |
|---|---|---|
| aged | owed a turn and holding nothing for `ageing_s` | waiting for longest |
| probing | probing jobs, while they hold less than their share | FIFO |
| short | jobs of unknown size, while they hold less than their virtual share | memory held |
| late | of known size, finished virtually | virtual finish |
| sized | of known size | virtual size, in memory-seconds |
| fair | jobs of unknown size, whatever they hold | memory held |
| over | probing jobs beyond their share | FIFO |

What one group cannot use goes to the next: the cycle passes over whoever does not fit (backfill).

Owed are jobs that finished virtually and jobs of unknown size: all others come to be owed, for virtual sizes fall to 0.

Deviations:
* A job of size 0 that still runs is first of the size-based sub-queue; the fair sub-queue's claim to its virtual share
  comes before, as in the paper, so that a job of grossly underestimated size does not stop new ones.
* One fair world for all of the cluster's queues. Between queues shares the framework, by their weights; between the
  namespaces of a queue too, and then only jobs of one namespace are compared.
* A job that no event announced is fair and has no virtual share: nothing is known of it.
* A dump holds a bounded number of jobs' states; a job left out begins anew. Virtual jobs whose real ones are over are
  not dumped, and the fair world stands still while nobody runs it.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.framework.questions import JobOrder, Observer
from boathouse_policies.fspy import jobs
from boathouse_policies.fspy.jobs import JobRecord
from boathouse_policies.fspy.prediction import Predictor
from boathouse_policies.fspy.virtual import World

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boathouse_policies.framework import CycleState
    from boathouse_policies.fspy.config import Config
    from boathouse_policies.fspy.virtual import VirtualJob


class Group(enum.IntEnum):
    """Where a job stands; see the module's docstring."""

    AGED = 0
    PROBING = 1
    SHORT = 2
    LATE = 3
    SIZED = 4
    FAIR = 5
    OVER = 6


class SizeBased(JobOrder, Observer):
    """FSPY's order, and the observer that keeps its fair world and its models.

    Args:
        config: The constants.

    Attributes:
        world: The fair world.
        predictor: The models.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.world = World(config)
        self.predictor = Predictor(config)
        self._jobs: dict[model.JobId, JobRecord] = {}
        self._restored: dict[model.JobId, Mapping[str, Any]] = {}
        self._probes: dict[model.JobId, None] = {}
        self._unsized: tuple[int, frozenset[model.JobId], float] = (-1, frozenset(), 0.0)
        self._calm_until_s = -math.inf
        self._turn: _Turn | None = None

    # Order

    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Group, then what counts within it."""
        turn, virtual, now_s = self._turn_of(state), self.world.virtual, state.view.now_s
        found = [virtual.get(job.id) for job in jobs]
        sized = [one is not None and one.sized and not one.finished for one in found]
        for job, is_sized in zip(jobs, sized, strict=True):
            if not is_sized:  # what a job of known size holds changes nobody's standing
                turn.look(job.id)
        return [
            _key(Group.SIZED, self.world.size_left(one, now_s))
            if is_sized and one is not None
            else _key(*self._standing(job, turn))
            for job, one, is_sized in zip(jobs, found, sized, strict=True)
        ]

    def generation(self, state: CycleState) -> int:
        """Changes when a sub-queue came to hold its share, or less than it: then all its jobs' keys have changed."""
        return self._turn_of(state).generation

    def expected(self, job: model.JobId) -> float:
        """A job's standing in a future that somebody plays: its virtual size as last known, infinite where unknown."""
        virtual = self.world.job(job)
        if virtual is None or not (virtual.sized or virtual.finished):
            return math.inf
        return self.world.size_left(virtual, self.world.now_s)

    def group(self, job: model.Job, state: CycleState) -> Group:
        """Where a job stands in this cycle."""
        return self._standing(job, self._turn_of(state))[0]

    def nobody_aged(self, state: CycleState) -> bool:
        """Whether no job is aged in this cycle. It is looked up only when the first could have become so."""
        now_s = state.view.now_s
        if now_s < self._calm_until_s:
            return True
        turn, since_s = self._turn_of(state), now_s
        for record in self._jobs.values():
            if not record.is_probe and not turn.runs(record.job.id):  # one that runs may be owed a turn from now on
                virtual = self.world.job(record.job.id)
                if virtual is None or not virtual.sized or virtual.finished:
                    since_s = min(since_s, self._owed_since_s(record, virtual))
        self._calm_until_s = since_s + self.config.ageing_s
        return now_s < self._calm_until_s

    def _turn_of(self, state: CycleState) -> _Turn:
        if self._turn is None or self._turn.state is not state:
            totals, now_s = state.view.layout.totals, state.view.now_s
            self.world.resize((float(totals[model.CPU]), float(totals[model.MEMORY])), now_s)
            self.world.advance(now_s)
            if self._unsized[0] != self.world.version:
                unsized = [one for one in self.world.queue() if not one.sized]
                share = math.fsum(one.share[model.MEMORY] for one in unsized)
                self._unsized = self.world.version, frozenset(one.id for one in unsized), share
            probing_share = self.config.probing_share * float(totals[model.MEMORY])
            self._turn = _Turn(state, self._probes, probing_share, *self._unsized[1:])
        return self._turn

    def _standing(self, job: model.Job, turn: _Turn) -> tuple[Group, float]:
        record, virtual = self._jobs.get(job.id), self.world.job(job.id)
        if record is not None and record.is_probe:
            return (Group.PROBING, 0.0) if turn.probing_is_short else (Group.OVER, 0.0)  # equal: by submission
        now_s = turn.state.view.now_s
        if virtual is not None and virtual.sized and not virtual.finished:
            return Group.SIZED, self.world.size_left(virtual, now_s)
        if record is not None and not turn.runs(job.id):
            since_s = self._owed_since_s(record, virtual)
            if now_s - since_s >= self.config.ageing_s:
                return Group.AGED, since_s
        if virtual is not None and virtual.finished:
            return Group.LATE, virtual.finish_s
        share = turn.held(job.id) / job.weight
        return (Group.SHORT if virtual is not None and turn.fair_is_short else Group.FAIR), share

    def _owed_since_s(self, record: JobRecord, virtual: VirtualJob | None) -> float:
        return max(record.held_s, virtual.finish_s) if virtual is not None and virtual.finished else record.held_s

    # Events

    def observe(self, event: model.Event) -> None:
        """Keep up the fair world, and learn."""
        self._turn = None
        match event:
            case model.Submitted():
                self._submitted(event)
            case model.Placed():
                self._count(event, placed=1)
            case model.Finished():
                self._finished(event)
            case model.Failed():
                self._count(event, placed=-1)
            case model.Ended():
                self._ended(event)
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        record = self._jobs.get(event.job.id)
        if record is None:
            restored = self._restored.get(event.job.id, {})
            record = self._jobs[event.job.id] = JobRecord(event.job, event.now_s, restored)
        record.describe(event)
        if record.is_probe:
            self._probes[event.job.id] = None
        else:
            self._reshape(record, event.now_s)

    def _count(self, event: model.Placed | model.Failed, placed: int) -> None:
        record = self._jobs.get(event.job)
        if record is None:
            return
        record.held_s = max(record.held_s, event.now_s)
        one = record.classes.get(event.task_class)
        if one is not None:
            one.placed = max(0, one.placed + placed)

    def _finished(self, event: model.Finished) -> None:
        record = self._jobs.get(event.job)
        if record is None:
            return
        record.held_s = max(record.held_s, event.now_s)
        one = record.classes.get(event.task_class)
        if one is None:
            return
        one.succeeded += 1
        one.run_s += event.duration_s
        if one.stage is model.Stage.PROBE:
            original = record if record.job.probe_of is None else self._jobs.get(record.job.probe_of)
            if original is not None and original.probed(event.counters, self.predictor):
                self._reshape(original, event.now_s)

    def _ended(self, event: model.Ended) -> None:
        record = self._jobs.pop(event.job, None)
        self._probes.pop(event.job, None)
        self._restored.pop(event.job, None)
        self.world.end(event.job, event.now_s, succeeded=event.succeeded)
        if record is not None and event.succeeded and not record.is_probe:
            record.teach(self.predictor)

    def _reshape(self, record: JobRecord, now_s: float) -> None:
        shape = record.shape(self.predictor, use_estimates=self.config.use_estimates)
        if record.job.id in self.world:
            self.world.reshape(record.job.id, shape, now_s)
        else:
            restored = self._restored.pop(record.job.id, {})
            self.world.add(record.job, shape, now_s, used=float(restored.get("used", 0.0)))

    def needs_probe(self, job: model.JobId) -> bool:
        """Whether a probing job is worth its container: the models know such jobs, and nothing says its size yet."""
        record, virtual = self._jobs.get(job), self.world.job(job)
        if record is None or virtual is None or record.is_probe or record.is_uber or not record.is_map_reduce:
            return False
        return record.features is None and not virtual.sized

    # State

    def dump(self) -> Mapping[str, Any]:
        """The models, the programs, and of each job what it used up of its virtual size, the largest first."""
        used = {job.id: job.used for job in self.world.jobs() if job.id in self._jobs}
        reserved = sorted(used, key=lambda job: (-used[job], job))[: self.config.jobs_dumped]
        return {
            "version": 1,
            "predictor": self.predictor.dump(),
            "largest_size": self.world.largest_size,
            "jobs": {job: {"used": used[job], **self._jobs[job].dump()} for job in reserved},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump: jobs take up their virtual state when they are submitted again.

        Raises:
            ValueError: It is not a dump of this policy.
        """
        restored = {model.JobId(job): jobs.checked(known) for job, known in state.get("jobs", {}).items()}
        largest = float(state.get("largest_size", 0.0))
        if not 0 <= largest < math.inf:
            raise ValueError(f"a job of size {largest}")
        self._turn = None
        self._calm_until_s = -math.inf
        self.predictor.load(state.get("predictor", {}))
        self.world.largest_size = largest
        self._restored = restored


class _Turn:
    """What the sub-queues hold in one cycle, kept up as tasks are placed."""

    def __init__(
        self,
        state: CycleState,
        probes: Collection[model.JobId],
        probing_share: float,
        unsized: Collection[model.JobId],
        fair_share: float,
    ) -> None:
        self.state = state
        self.generation = 0
        self._memory: dict[model.JobId, float] = {}
        self._probes = probes
        self._unsized = unsized
        self._probing_share = probing_share
        self._fair_share = fair_share
        self._probing_held = math.fsum(self.held(job) for job in self._probes)
        self._fair_held = math.fsum(self.held(job) for job in self._unsized)
        self.probing_is_short = self._probing_held < self._probing_share
        self.fair_is_short = self._fair_held < self._fair_share

    def held(self, job: model.JobId) -> float:
        """Bytes of memory that a job holds, as last looked at."""
        known = self._memory.get(job)
        if known is None:
            known = self._memory[job] = float(self.state.job_usage(job)[model.MEMORY])
        return known

    def runs(self, job: model.JobId) -> bool:
        """Whether a job has any task placed."""
        return bool(self.state.job_usage(job)[model.PODS])

    def look(self, job: model.JobId) -> None:
        """A job may hold something else by now."""
        before = self.held(job)
        now = float(self.state.job_usage(job)[model.MEMORY])
        if now == before:
            return
        self._memory[job] = now
        if job in self._probes:
            self._probing_held += now - before
        elif job in self._unsized:
            self._fair_held += now - before
        probing, fair = self._probing_held < self._probing_share, self._fair_held < self._fair_share
        if (probing, fair) != (self.probing_is_short, self.fair_is_short):
            self.probing_is_short, self.fair_is_short = probing, fair
            self.generation += 1


def _key(group: Group, value: float) -> float:
    """Group first, then value: groups are told apart by the exponent, so that the value keeps all its digits."""
    return math.ldexp(min(max(value, _LEAST), _MOST), _BITS * (group - Group.LATE))


_BITS = 128
_LEAST, _MOST = 2.0**-40, 2.0**87  # less than 2^128 apart: groups do not meet, and no key over- or underflows
