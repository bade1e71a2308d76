"""The queues of FSPY as an order of jobs (FSPY, III.C and Figure 1), and a node for a job that waits too long.

Whose turn it is, the first group that has somebody:

| group | who | order within |
|---|---|---|
| aged | overdue without resources for `ageing_s` | waiting for longest |
| probing | probing jobs, while they hold less than their share | FIFO |
| short | jobs of unknown size, while all hold less than their virtual shares | memory held |
| late | of known size, finished virtually | virtual finish |
| sized | of known size | virtual size, in memory-seconds |
| fair | jobs of unknown size, whatever they hold | memory held |
| over | probing jobs beyond their share | FIFO |

What one group cannot use goes to the next: the cycle passes over whoever does not fit (backfill).

Overdue are jobs that finished virtually and jobs of unknown size. All others become overdue: virtual sizes fall to 0.

Deviations:
* A job of size 0 that still runs is first of the size-based sub-queue; the fair sub-queue's claim to its virtual share
  comes before, as in the paper, so that a job of grossly underestimated size does not stop new ones.
* Each queue and namespace has a fair world and a fair sub-queue of its own (`virtual`), for only jobs of one namespace
  are compared. Between queues and between the namespaces of a queue shares the framework.
* A job that no event announced is fair and has no virtual share: nothing is known of it.
* A dump holds a bounded number of jobs' states; a job left out begins anew. Virtual jobs whose real ones are over are
  not dumped, and the fair world stands still while nobody runs it.

Reserve a node for a job that waits too long (FSPY does not: ours, so that nothing starves).

Backfill lets small tasks pass a large one that does not fit. Where that goes on for `ageing_s`, the node closest
to having room for it is reserved for it. One node at a time, for the job that has waited for longest; none for gangs.
"""

import dataclasses
import enum
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import (
    Assignment,
    CycleState,
    Figure,
    Figures,
    Hooks,
    JobOrder,
    Observer,
    PendingClass,
    Reserve,
    SchedulingQueue,
    Where,
)
from boathouse_policies.framework.queue import NO_CLASSES
from boathouse_policies.fspy.config import Config
from boathouse_policies.fspy.jobs import JobRecord, Restored
from boathouse_policies.fspy.prediction import Prediction, Predictor
from boathouse_policies.fspy.virtual import VirtualJob, Worlds


class Group(enum.IntEnum):
    """The groups of jobs, the first to go first; see the module's docstring."""

    AGED = 0
    PROBING = 1
    SHORT = 2
    LATE = 3
    SIZED = 4
    FAIR = 5
    OVER = 6


@dataclasses.dataclass(slots=True)
class SubQueue:
    """Jobs that go before others while they hold less memory than their share."""

    jobs: Collection[model.JobId] = ()
    share: float = 0.0  # their share in bytes
    held: int = 0  # bytes of memory that they hold, tasks of this cycle included

    @classmethod
    def of(cls, jobs: Collection[model.JobId], share: float, state: CycleState) -> "SubQueue":
        """Count what some jobs hold when a cycle begins."""
        return cls(jobs, share, sum(state.job_usage(job)[model.MEMORY] for job in jobs))

    @property
    def is_short(self) -> bool:
        """Whether they hold less than their share."""
        return self.held < self.share


class SizeBased(JobOrder, Observer, Hooks, Figures):
    """FSPY's order, and the observer that keeps its fair worlds and its models."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.worlds = Worlds(config)
        self.predictor = Predictor(config)
        self._jobs: dict[model.JobId, JobRecord] = {}
        self._restored: dict[model.JobId, Restored] = {}
        self._probes: set[model.JobId] = set()
        self._fair: dict[model.JobId, SubQueue] = {}  # of jobs of unknown size: one for those of a world
        self._probing = SubQueue()
        self.nobody_aged = True  # whether no job was aged when the cycle began
        self._queued = NO_CLASSES
        self._ahead: dict[model.JobId, int] = {}  # jobs before a job at the end of the cycle, once it was asked for
        self._calm_until_s = -math.inf
        self._generation = 0

    # The cycle

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Let the time that passed since the last cycle pass in the fair worlds, and count what the sub-queues hold."""
        totals, now_s, self._queued = state.view.layout.totals, state.view.now_s, queue.sorted_classes()
        self.worlds.resize((float(totals[model.CPU]), float(totals[model.MEMORY])), queue.queues, now_s)
        self._fair, self._ahead = {}, {}
        for world in self.worlds.pending():
            unsized = {job.id: job.share[model.MEMORY] for job in world.queue if job.size == math.inf}
            if unsized:
                fair = SubQueue.of(unsized.keys(), math.fsum(unsized.values()), state)
                self._fair.update(dict.fromkeys(unsized, fair))
        self._probing = SubQueue.of(self._probes, self.config.probing_share * float(totals[model.MEMORY]), state)
        if now_s >= self._calm_until_s:
            self._calm_until_s = self._first_overdue_s(state) + self.config.ageing_s
        self.nobody_aged = now_s < self._calm_until_s

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Count the memory of a task that was placed."""
        self._count_memory(assignment.pending.job.id, assignment.amounts[model.MEMORY])

    def undone(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Take back the memory of a task whose placement was undone."""
        self._count_memory(assignment.pending.job.id, -assignment.amounts[model.MEMORY])

    def _count_memory(self, job: model.JobId, memory_bytes: int) -> None:
        for sub_queue in (self._probing, self._fair.get(job)):
            if sub_queue is not None and job in sub_queue.jobs:
                was_short = sub_queue.is_short
                sub_queue.held += memory_bytes
                self._generation += len(sub_queue.jobs) > 1 and was_short != sub_queue.is_short

    def _first_overdue_s(self, state: CycleState) -> float:
        """Return since when the first job without resources is overdue; a running job may be from now on."""
        since_s = [
            self._overdue_since_s(record, virtual)
            for job, record in self._jobs.items()
            if not record.is_probe
            and not state.job_usage(job)[model.PODS]
            and ((virtual := self.worlds.jobs.get(job)) is None or virtual.size == math.inf or virtual.finished)
        ]
        return min(since_s, default=state.view.now_s)

    # Order

    def keys(self, jobs: Sequence[model.Job], state: CycleState) -> Sequence[float]:
        """Return keys that compare groups first, then what counts within the group."""
        return [_key(*self._rank(job, state)) for job in jobs]

    def generation(self, state: CycleState) -> int:  # noqa: ARG002 - the protocol's
        """Return another number once several jobs came to hold their share, or less: then the others' keys changed."""
        return self._generation

    def group(self, job: model.Job, state: CycleState) -> Group:
        """Return the group of a job in this cycle."""
        return self._rank(job, state)[0]

    def precedes(self, job: model.Job, other: model.Job, state: CycleState, share: float) -> bool:
        """Return whether a job of the same queue and namespace goes before another, with a share of its own size."""
        if (job.queue, job.namespace, job.priority) != (other.queue, other.namespace, other.priority):
            return False
        group, value = self._rank(other, state)
        return self._rank(job, state) < (group, value * share)

    def expected(self, job: model.JobId) -> float:
        """Return a job's virtual size as last known, infinite where unknown: its rank in a look ahead."""
        virtual = self.worlds.jobs.get(job)
        if virtual is None:
            return math.inf
        if (assumed := self._assumed(virtual)) is not None:
            return assumed
        return self._work_left(virtual) if self._is_overrun(virtual, virtual.world.now_s) else virtual.size_left()

    def _assumed(self, virtual: VirtualJob) -> float | None:
        seconds = self.config.assumed_task_s
        return None if seconds is None or virtual.size < math.inf else virtual.bound[model.MEMORY] * seconds

    def _is_overrun(self, virtual: VirtualJob, now_s: float) -> bool:
        """Return whether a job outlived its virtual size and is ranked by the work that is left of it: for a while."""
        if self.config.late_first or not virtual.finished or virtual.id not in self._jobs:
            return False
        return virtual.shape.is_sized and now_s - virtual.finish_s < self.config.ageing_s

    def _work_left(self, virtual: VirtualJob) -> float:
        return self._jobs[virtual.id].work_left(virtual.shape)

    def _rank(self, job: model.Job, state: CycleState) -> tuple[Group, float]:
        virtual, now_s = self.worlds.jobs.get(job.id), state.view.now_s
        if virtual is not None and virtual.size < math.inf and not virtual.finished:
            return Group.SIZED, virtual.size_left(now_s)
        record, usage = self._jobs.get(job.id), state.job_usage(job.id)
        if record is not None and record.is_probe:
            return Group.PROBING if self._probing.is_short else Group.OVER, 0.0  # equal: by submission
        if record is not None and not usage[model.PODS]:
            since_s = self._overdue_since_s(record, virtual)
            if now_s - since_s >= self.config.ageing_s:
                return Group.AGED, since_s
        if virtual is not None and virtual.finished:
            if self._is_overrun(virtual, now_s):
                return Group.SIZED, self._work_left(virtual)
            return Group.LATE, virtual.finish_s
        return self._rank_unsized(job, virtual, usage[model.MEMORY])

    def _rank_unsized(self, job: model.Job, virtual: VirtualJob | None, held_bytes: int) -> tuple[Group, float]:
        if virtual is not None and (assumed := self._assumed(virtual)) is not None:
            record = self._jobs.get(job.id)
            is_pilot = not held_bytes and record is not None and record.has_not_begun and self._is_large(virtual)
            return Group.SIZED, 0.0 if is_pilot else assumed
        is_short = job.id in self._fair and self._fair[job.id].is_short
        return Group.SHORT if is_short else Group.FAIR, held_bytes / job.weight

    def _is_large(self, virtual: VirtualJob) -> bool:
        return virtual.bound[model.MEMORY] >= self.config.probed_from * virtual.world.cluster[model.MEMORY]

    @staticmethod
    def _overdue_since_s(record: JobRecord, virtual: VirtualJob | None) -> float:
        return max(record.held_s, virtual.finish_s) if virtual is not None and virtual.finished else record.held_s

    # Figures

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return the virtual size of the job in byte-seconds, its group, and how well its program is predicted."""
        job = assignment.pending.job
        standing = self.predictor.standing(job.kind)
        model_ = () if standing is None else (("sizeModel", float(standing[0])), ("sizeError", standing[1]))
        return (*self._figures(job, state), *model_)

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return how many jobs of its queue and namespace go before it, too."""
        figures, queued = self._figures(pending.job, state), self._queued
        place = queued.job_places.get(pending.job.id)
        band = None if place is None else queued.band_of[place]
        if band is None or band.stop - band.start > _MOST_COMPARED:
            return figures
        if pending.job.id not in self._ahead:  # once for all jobs of the band: one by one takes time by their square
            jobs = queued.jobs[band.start : band.stop]
            ranks = sorted((*self._rank(job, state), job.submitted_s, job.id) for job in jobs)
            self._ahead.update((job, ahead) for ahead, (*_, job) in enumerate(ranks))
        return (*figures, ("jobsAhead", float(self._ahead[pending.job.id])))

    def _figures(self, job: model.Job, state: CycleState) -> tuple[Figure, ...]:
        group, value = self._rank(job, state)
        if group is not Group.SIZED:
            return (("group", float(group)),)
        is_known = self.worlds.jobs[job.id].size < math.inf
        return ("group", float(group)), ("virtualMemorySeconds" if is_known else "assumedMemorySeconds", value)

    # Events

    def observe(self, event: model.Event) -> None:
        """Keep up the fair worlds, and learn."""
        match event:
            case model.Placed() | model.Finished() | model.Failed() if event.job in self._jobs:
                self._count(self._jobs[event.job], event)
            case model.Submitted():
                self._submitted(event)
            case model.Ended():
                self._ended(event)
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        job = event.job.id
        if job not in self._jobs:
            restored = self._restored.pop(job, Restored())
            self._jobs[job] = JobRecord(event.job, event.now_s, restored, restored.features, restored.is_probed)
        record = self._jobs[job]
        record.describe(event)
        if record.is_probe:
            self._probes.add(job)
        else:
            self._reshape(record, event.now_s)

    def _count(self, record: JobRecord, event: model.Placed | model.Finished | model.Failed) -> None:
        record.held_s = max(record.held_s, event.now_s)
        tasks = record.classes.get(event.task_class)
        if tasks is None:
            return
        if isinstance(event, model.Finished):
            tasks.succeeded += 1
            tasks.run_s += event.duration_s
            if tasks.task_class.stage is model.Stage.PROBE:
                self._probed(record, event)
        else:
            tasks.placed = max(0, tasks.placed + (1 if isinstance(event, model.Placed) else -1))

    def _probed(self, record: JobRecord, event: model.Finished) -> None:
        original = record if record.job.probe_of is None else self._jobs.get(record.job.probe_of)
        if original is not None and original.probed(event.counters, self.predictor):
            self._reshape(original, event.now_s)

    def _ended(self, event: model.Ended) -> None:
        record = self._jobs.pop(event.job, None)
        self._probes.discard(event.job)
        self._restored.pop(event.job, None)
        self.worlds.end(event.job, event.now_s, succeeded=event.succeeded)
        if record is not None and event.succeeded and not record.is_probe:
            record.train(self.predictor)

    def _reshape(self, record: JobRecord, now_s: float) -> None:
        shape = record.shape(self.predictor, use_estimates=self.config.use_estimates)
        if (virtual := self.worlds.jobs.get(record.job.id)) is not None:
            virtual.world.reshape(virtual, shape, now_s)
        else:
            self.worlds.add(record.job, shape, now_s, used=record.restored.used)

    def needs_probe(self, job: model.JobId) -> bool:
        """Return whether a probe is worth its container: of a large job of unknown size, of a kind that models know."""
        record, virtual = self._jobs.get(job), self.worlds.jobs.get(job)
        if record is None or virtual is None or not record.is_map_reduce or record.is_probe or record.features:
            return False
        return self.config.probes and virtual.size == math.inf and self._is_large(virtual)

    def prediction(self, job: model.JobId) -> Prediction | None:
        """Return the predicted size of a job that is not over; None while it is not known."""
        record, virtual = self._jobs.get(job), self.worlds.jobs.get(job)
        return None if record is None or virtual is None else record.prediction(virtual.shape)

    # State

    def dump(self) -> Mapping[str, Any]:
        """Return the models, the programs, and of each job what it used up of its virtual size, the largest first."""
        used = {job.id: job.used for job in self.worlds.jobs.values() if job.id in self._jobs}
        kept = sorted(used, key=lambda job: (-used[job], job))[: self.config.jobs_dumped]
        return {
            "version": 1,
            "predictor": self.predictor.dump(),
            "jobs": {job: {"used": used[job], **self._jobs[job].dump()} for job in kept},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump, jobs once they are submitted again; a ValueError says that it is no dump."""
        restored = {model.JobId(job): Restored.load(dumped) for job, dumped in state.get("jobs", {}).items()}
        self._calm_until_s = -math.inf
        self.predictor.load(state.get("predictor", {}))
        self._restored = restored


def _key(group: Group, value: float) -> float:
    """Group first, then value: groups are told apart by the exponent, so that the value keeps all its digits."""
    return _SCALES[group] * min(max(value, _LEAST), _MOST)


_MOST_COMPARED = 1000  # jobs of a namespace for whose diagnoses the jobs ahead are counted
_LEAST, _MOST = 2.0**-40, 2.0**87  # less than 2^128 apart: groups do not meet, and no key over- or underflows
_SCALES = [2.0 ** (128 * (group - Group.LATE)) for group in Group]


class AgeingReserve(Reserve, Hooks):
    """Reserve a node for an aged job that fits nowhere, one at a time. Another policy reserves for stages `apart`."""

    def __init__(self, order: SizeBased, apart: Collection[model.Stage] = ()) -> None:
        self.order, self._apart, self._classes = order, apart, NO_CLASSES

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Begin a cycle: note its classes, for the stages of those that have nodes reserved."""
        self._classes = queue.sorted_classes()

    def is_idle(self, state: CycleState) -> bool:
        """Return whether no node is reserved in this cycle, nor will be."""
        return not state.reserved and self.order.nobody_aged

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return the nodes that are reserved for no class or for this one, shape [N]; None for all."""
        if not state.reserved:
            return None
        mask = np.ones(len(state.offered), np.bool_)
        mask[[node for node, owner in state.reserved.items() if owner != pending.task_class.id]] = False
        return mask[where]

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve the node that lacks least of what the class needs, of those that could hold it when empty."""
        queued, places = self._classes.queued, self._classes.places
        owners = [queued[places[owner]].task_class for owner in state.reserved.values() if owner in places]
        is_taken = any(task_class.stage not in self._apart for task_class in owners)
        if is_taken or self.order.group(pending.job, state) is not Group.AGED:
            return ()
        layout, rows = state.view.layout, pending.shape.rows
        could = state.reservable(pending) & layout.large_enough(pending.least)
        could[list(state.reserved)] = False
        if not could.any():
            return ()
        lacking = (np.maximum(pending.shape.need - state.free[rows], 0) / pending.shape.need).max(axis=0)
        node = layout.names[int(np.where(could, lacking, np.inf).argmin())]
        message = f"{node} is reserved for it until there is room: it has been pending for long"
        verdict = model.Verdict(code=model.Code.JOB_ORDER, message=message)
        return (model.Reservation(task_class=pending.task_class, job=pending.job, verdict=verdict, node=node),)
