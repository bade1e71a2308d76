"""Whether a decision is worth more than its alternative: what `boathouse` asks before a paper's part acts.

The unit is a second of the sum of the jobs' completion times. `Prices` says what a second of a resource is worth on
each node, from the pending jobs as a fluid: one byte-second more for one delays all that wait by 1/total seconds, so

    price = jobs that wait / total of the cluster,

0 where the resource is not what stops the next pending tasks there: of CPU and memory only that one has a price of
which fewer of them fit. Prices are frozen as a cycle begins, and what a decision frees is used once in it.

A task gets less memory only where memory still is what stops the next ones when it has its memory and its CPU: on the
last free CPU of a node the memory that it saves helps nobody, and a slower task keeps that CPU for longer. A reducer
whose maps are not nearly done gets all of it: what holds memory and CPU while it waits for map output saves neither.

A part acts where gain - cost - z·deviation > 0 (`Worth.is_worthwhile`). Estimates that are not known make it neutral:
it does not act.

| part | gain | cost |
|---|---|---|
| refuse hosts (`Refusing`) | the slowdown that the task escapes | the wait so far, and as much again |
| less memory (`Smaller`) | memory-seconds left to others, at their price | longer CPU-seconds, at theirs |
| suspend a reducer (`Lending`) | CPU-seconds lent, at their price | output copied later, and the latency |

The fourth, reservations, are worth what their owner is worth in the order, and more with age (`boathouse.Backfill`).
"""

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from boathouse_policies import fspy, ikayak, ila, model, yarn_me
from boathouse_policies.framework import (
    ClusterView,
    Controller,
    CycleState,
    Figure,
    Hooks,
    PendingClass,
    SchedulingQueue,
    Score,
    Where,
)
from boathouse_policies.framework.cycle_state import Assignment
from boathouse_policies.framework.questions import Patience
from boathouse_policies.ikayak.book import Book, Reducer
from boathouse_policies.ikayak.suspension import REASON, Suspension
from boathouse_policies.profiles.guard import Guard, Part, key_of
from boathouse_policies.yarn_me.decide import LookingAhead
from boathouse_policies.yarn_me.outlook import Outlook
from boathouse_policies.yarn_me.penalty import Elastic

CAUTION = 1.0  # z: by how many standard deviations a gain must exceed its cost
RENEWED_S = 1.0  # prices are at most so old
LATENCY_S = 1.0
"""From the decision to suspend to the CPU that is free, and from that to resume to the shuffle that runs."""
EARLY_SHARE = 0.1
"""A reducer that starts while a larger part of its job's maps is left waits for their output.

Tried on odd seeds of the board (1, 3, 5): without this rule jobs with long reduces took 1.06 of their time with whole
tasks only, with 0.5 1.05, with 0.25 1.01, with 0.1 1.00; with 0 it cost 4 % where each task has twice the memory, with
0.1 1 %.
"""
COPY_SHARE = 1 / 3  # part of a reduce's run time in which it copies map output: as in Hadoop's progress


class Worth(NamedTuple):
    """What a decision is expected to change in the sum of completion times, with the standard deviation of that."""

    gain_s: float
    cost_s: float
    deviation_s: float = 0.0

    @property
    def surplus_s(self) -> float:
        """By how much the gain exceeds the cost beyond chance."""
        return self.gain_s - self.cost_s - CAUTION * self.deviation_s

    @property
    def is_worthwhile(self) -> bool:
        """Whether the gain exceeds the cost by more than chance."""
        return self.surplus_s > 0

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Both, for `explain`."""
        return ("gainSeconds", self.gain_s), ("costSeconds", self.cost_s)


NEUTRAL = Worth(0.0, 0.0)  # of what is not known: the part does not act


class Prices(Controller):
    """What a second of CPU and of memory is worth on each node: the first controller, so that the others may ask."""

    def __init__(self) -> None:
        self._queue: SchedulingQueue  # of the last cycle, as the view
        self._view: ClusterView
        self._columns: model.FloatVector | None = None
        self._wanted, self._made_s = np.ones(2), -math.inf

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide nothing, but forget old prices: they are worked out when somebody asks."""
        if not 0 <= view.now_s - self._made_s < RENEWED_S or self._view.layout is not view.layout:
            self._columns = None
        self._queue, self._view = queue, view
        return ()

    @property
    def columns(self) -> model.FloatVector:
        """The price of a millicore-second and of a byte-second on each node, shape [2, N]."""
        if self._columns is None:
            self._wanted, jobs = _wanted(self._queue)
            fits = np.maximum(self._view.free()[_ROWS], 0) / self._wanted[:, None]
            totals = np.maximum(self._view.layout.allocatable[_ROWS].sum(axis=1), 1.0)
            self._columns, self._made_s = (jobs / totals)[:, None] * (fits <= fits[::-1]), self._view.now_s
        return self._columns

    def is_memory_scarce(self, cpu_milli: model.IntVector, memory_bytes: model.IntVector) -> model.BoolVector:
        """Return whether memory is what stops the next pending tasks where so much is free, shape [N]."""
        assert self._columns is not None
        scarce: model.BoolVector = memory_bytes / self._wanted[1] <= cpu_milli / self._wanted[0]
        return scarce


def _wanted(queue: SchedulingQueue) -> tuple[model.FloatVector, int]:
    """Return the millicores and bytes that the pending tasks request, at least 1 of each, and the number of jobs."""
    wanted, jobs = np.ones(2), set()
    for queued in queue.sorted_classes().queued:
        if count := queued.pool.count:
            size = queued.task_class.resources
            wanted += count * size.cpu_milli, count * size.memory_bytes
            jobs.add(queued.job.id)
    return wanted, len(jobs)


class Growing(Patience, Hooks):
    """Executors beyond an application's minimum are not granted while jobs that go before it wait for room.

    What an executor holds it holds until its application ends, and a job with less left would wait for as long. After
    `_GROWS_AFTER_S` it is granted all the same: those jobs may wait for something else.
    """

    def __init__(self, order: fspy.SizeBased, otherwise: Patience) -> None:
        self._order, self._otherwise = order, otherwise
        self._waiting: dict[model.JobId, model.Job] = {}
        self._left: collections.Counter[model.JobId] = collections.Counter()
        self._since_s: dict[model.JobId, float] = {}
        self._before: dict[model.JobId, model.JobId] = {}  # who was found to go before an application in this cycle
        self._first: set[model.JobId] = set()  # applications that nobody goes before in this cycle

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Count what is pending of each job, where executors are pending too."""
        self._left, self._waiting, self._before, self._first = collections.Counter(), {}, {}, set()
        classes, growing = queue.sorted_classes(), set()
        for queued in classes.queued if model.Stage.EXECUTOR in classes.stages else ():
            job = queued.job
            if queued.pool.count:
                self._left[job.id] += queued.pool.count
                self._waiting[job.id] = job
                if queued.task_class.stage is model.Stage.EXECUTOR:
                    growing.add(job.id)
        self._since_s = {job: self._since_s.get(job, state.view.now_s) for job in growing}

    def placed(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Count a placed task."""
        self._left[assignment.pending.job.id] -= 1

    def undone(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Count a task whose placement was taken back."""
        self._left[assignment.pending.job.id] += 1

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Return that executors beyond the minimum wait while somebody goes before; None takes the node."""
        task_class, job = pending.task_class, pending.job
        if task_class.stage is not model.Stage.EXECUTOR or task_class.is_short:
            return self._otherwise.wait(pending, node, state)
        # with its driver, an application that is at its minimum has one pod more
        if state.job_usage(job.id)[model.PODS] <= max(1, task_class.gang_min) or not self._is_refused(pending, state):
            return None
        return model.Wait(task_class=task_class, job=job, verdict=BEHIND, until_s=state.view.now_s + RENEWED_S)

    def _is_refused(self, pending: PendingClass, state: CycleState) -> bool:
        job = pending.job
        if job.id in self._first or state.view.now_s - self._since_s.get(job.id, -math.inf) >= _GROWS_AFTER_S:
            return False
        if (known := self._before.get(job.id)) is None or self._left[known] <= 0:
            others = (other for other in self._waiting.values() if self._left[other.id] > 0 and other.id != job.id)
            known = next((other.id for other in others if self._order.precedes(other, job, state, 1.0)), None)
            if known is None:
                self._first.add(job.id)  # within a cycle nobody comes
                return False
            self._before[job.id] = known
        return True


class Refusing(ila.Interference):
    """ILA, which refuses hosts only for as long as a task escapes more slowdown than it waits.

    Gain: what a task that runs alone for T would lose at the least slowdown H for which it is refused, (H - 1)·T, with
    the deviation of T. Cost: the wait so far, and as much again. A class of which nothing was measured, or whose run
    time is not known, is refused nowhere.
    """

    def __init__(self, config: ila.Config, guard: Guard) -> None:
        super().__init__(config)
        self._guard = guard

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether interference may keep a class from hosts."""
        return super().concerns(pending) and self.worth(pending).is_worthwhile

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """Count a placed task; if it was refused before, the guard compares its wait with what it escaped."""
        pending, now_s = assignment.pending, state.view.now_s
        known, threshold = self.profiles.get(pending.task_class.id), self.config.threshold
        refused_s = math.inf if known is None or not known.is_map else known.refused_s
        super().placed(assignment, state)
        seconds = pending.task_class.estimates.duration_s(pending.task_class.resources)
        if refused_s >= now_s or not seconds or threshold is None:
            return
        slowed_s, waited_s, task = threshold * seconds, now_s - refused_s, assignment.pick.task.id
        predicted_s = slowed_s - waited_s - seconds
        self._guard.acted(Part.REFUSAL, task, pending.job, predicted_s, lambda ran_s: (slowed_s, waited_s + ran_s))
        told = ("escapedSeconds", slowed_s - seconds), ("waitedSeconds", waited_s)
        self.accepted[task] = (*self.accepted.get(task, ()), *told)

    def recheck_after_s(self, pending: PendingClass) -> float:
        """Return when to consider a class again: at the latest when another refusal is no longer worth it."""
        return min(self.config.recheck_s, self.worth(pending).surplus_s / _PER_WAIT)

    def worth(self, pending: PendingClass) -> Worth:
        """Return what it is worth to refuse a class once more."""
        task_class, threshold = pending.task_class, self.config.threshold
        known, seconds = self.profiles.get(task_class.id), task_class.estimates.duration_s(task_class.resources)
        if known is None or known.is_guess or seconds is None or threshold is None:
            return NEUTRAL
        if not self._guard.allows(Part.REFUSAL, pending.job, pending.state.view.now_s):
            return NEUTRAL
        waited_s = max(0.0, pending.state.view.now_s - known.refused_s)
        deviation_s = task_class.estimates.deviation_s() or 0.0
        return Worth((threshold - 1.0) * seconds, _PER_WAIT * waited_s, (threshold - 1.0) * deviation_s)

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return the predicted slowdown, and what the refusal is worth."""
        found = super().of_pending(pending, state)
        return (*found, *self.worth(pending).figures) if found else ()


class Smaller(yarn_me.Elasticity):
    """YARN-ME, which takes memory only where the longer run costs others less than the memory is worth to them."""

    def __init__(
        self,
        config: yarn_me.Config,
        regular: Score,
        outlook: Outlook,
        look_ahead: LookingAhead,
        prices: Prices,
        guard: Guard,
        book: Book,
    ) -> None:
        super().__init__(config, regular, outlook, look_ahead)
        self._prices, self._guard, self._book = prices, guard, book

    def _may(self, pending: PendingClass, state: CycleState) -> bool:
        """Return whether tasks of a class may be smaller: the guard allows it, and there is input to work on."""
        job = self._book.jobs.get(pending.job.id)
        if pending.task_class.stage is model.Stage.REDUCE and job is not None and job.left_share > EARLY_SHARE:
            return False
        return self._guard.allows(Part.MEMORY, pending.job, state.view.now_s)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where a class fits regularly, or with less memory that is worth it."""
        passed, estimates = super().mask(pending, state, where), pending.task_class.estimates
        if passed is None or not isinstance(estimates, Elastic):
            return passed
        memory = state.free[model.MEMORY, where]
        short = passed & (memory < estimates.ideal_bytes)
        if not short.any() or not self._may(pending, state):
            return passed & ~short
        cpu, of_memory = self._prices.columns[:, where]
        level = estimates.levels.places_on(memory)
        gain, cost, deviation = self._by_level(pending)[:, level]
        pays: model.BoolVector = of_memory * (gain - CAUTION * deviation) > cpu * cost
        left_milli = state.free[model.CPU, where] - pending.task_class.resources.cpu_milli
        pays &= self._prices.is_memory_scarce(left_milli, memory - estimates.levels.memory[level])
        return passed & (pays | ~short)

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return the answer for one node."""
        if not super().passes(pending, state, node):
            return False
        free, estimates = state.free_on(node), pending.task_class.estimates
        worth = self.worth(pending, free[model.MEMORY], node)
        if worth is None or not isinstance(estimates, Elastic):
            return True
        left_milli = free[model.CPU] - pending.task_class.resources.cpu_milli
        left_bytes = free[model.MEMORY] - estimates.levels.on(free[model.MEMORY])[0]
        is_scarce = bool(self._prices.is_memory_scarce(np.array(left_milli), np.array(left_bytes)))
        return worth.is_worthwhile and is_scarce and self._guard.allows(Part.MEMORY, pending.job, state.view.now_s)

    def worth(self, pending: PendingClass, memory_bytes: int, node: int) -> Worth | None:
        """Return what a size is worth on a node; None for the ideal size."""
        estimates = pending.task_class.estimates
        if not isinstance(estimates, Elastic) or memory_bytes >= estimates.ideal_bytes:
            return None
        level = int(estimates.levels.places_on(np.array([memory_bytes]))[0])
        gain, cost, deviation = self._by_level(pending)[:, level].tolist()
        cpu, of_memory = self._prices.columns[:, node].tolist()
        return Worth(of_memory * gain, cpu * cost, of_memory * deviation)

    @staticmethod
    def _by_level(pending: PendingClass) -> model.FloatVector:
        """Return of each level the byte-seconds saved, the millicore-seconds more, the deviation of the first."""
        estimates = pending.task_class.estimates
        assert isinstance(estimates, Elastic)
        levels = estimates.levels
        seconds = np.where(np.isfinite(levels.seconds), levels.seconds, 0.0)
        saved = estimates.ideal_bytes * levels.regular_s - levels.memory * seconds
        longer = pending.task_class.resources.cpu_milli * (seconds - levels.regular_s)
        unsure = (estimates.ideal_bytes - levels.memory) * (estimates.deviation_s() or 0.0)
        return np.stack([saved, longer, unsure])

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """Take the disk's bandwidth; the guard compares what a smaller map holds with what a whole one would have."""
        super().placed(assignment, state)
        task_class, size = assignment.pending.task_class, assignment.resources
        estimates, ideal = task_class.estimates, task_class.resources
        if not isinstance(estimates, Elastic) or size.memory_bytes >= estimates.ideal_bytes:
            return
        if task_class.stage is not model.Stage.MAP:
            return  # a reducer's time is that of the maps that it waits for
        regular_s = estimates.levels.regular_s
        cpu, memory = self._prices.columns[:, assignment.node].tolist()

        def measure(ran_s: float) -> tuple[float, float]:
            longer = cpu * size.cpu_milli * max(0.0, ran_s - regular_s)
            return memory * ideal.memory_bytes * regular_s, memory * size.memory_bytes * ran_s + longer

        worth = self.worth(assignment.pending, size.memory_bytes, assignment.node)
        predicted_s = 0.0 if worth is None else worth.gain_s - worth.cost_s
        self._guard.acted(Part.MEMORY, assignment.pick.task.id, assignment.pending.job, predicted_s, measure)

    def undone(self, assignment: Assignment, state: CycleState) -> None:
        """Give the disk's bandwidth back."""
        super().undone(assignment, state)
        self._guard.undone(assignment.pick.task.id)

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return what less memory costs a task, and what that is worth."""
        found, memory = super().of_placed(assignment, state), assignment.resources.memory_bytes
        worth = self.worth(assignment.pending, memory, assignment.node) if found else None
        return found if worth is None else (*found, *worth.figures)


@dataclasses.dataclass(slots=True)
class _Loan:
    """A suspension, and what is kept of it to see what it was worth; `used_s` is since when a map uses its CPU."""

    decided_s: float
    until_s: float
    gain_per_s: float
    worth: Worth
    used_s: float = math.inf


class Lending(Suspension):
    """iKayak's suspension, for reducers whose CPU is worth more to maps that fit beside them than to their own job.

    Gain: the CPU at its price, which is 0 where CPU is not what stops tasks on the node. Cost: the reducer copies later
    what it would have copied meanwhile, and both steps take time. Each map that waits, and the memory that it needs
    beside the reducer, counts once.
    """

    def __init__(self, config: ikayak.Config, book: Book, prices: Prices, guard: Guard) -> None:
        super().__init__(config, book)
        self._prices, self._guard = prices, guard
        self._decided: dict[Reducer, _Loan] = {}  # decisions that the shell has not carried out
        self._loans: dict[Reducer, _Loan] = {}

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide whom to suspend and whom to resume; the guard is told what those that are over were worth."""
        decided = super().advise(queue, view)
        if self._decided or self._loans:
            self._account(view.now_s)
        return decided

    def _account(self, now_s: float) -> None:
        for reducer, _ in self._book.suspended():
            if (loan := self._decided.pop(reducer, None)) is not None:
                self._loans[reducer] = loan
        for reducer in [reducer for reducer in self._loans if reducer not in self.paused]:
            loan = self._loans.pop(reducer)
            if self._book.reducers.get(reducer.task.task) is reducer:
                lent_s = loan.gain_per_s * max(0.0, min(now_s, loan.until_s) - loan.used_s)
                key, predicted_s = key_of(Part.SUSPENSION, reducer.job.job), loan.worth.gain_s - loan.worth.cost_s
                self._guard.ended(key, predicted_s, lent_s, loan.worth.cost_s, now_s)
        oldest_s = now_s - self._config.interval_s
        self._decided = {reducer: loan for reducer, loan in self._decided.items() if loan.decided_s > oldest_s}

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """Note whose CPU is used by a map that was placed."""
        if self._loans and assignment.pending.task_class.stage is model.Stage.MAP:
            node, now_s = state.view.layout.names[assignment.node], state.view.now_s
            for reducer, loan in self._loans.items():
                if reducer.task.node == node:
                    loan.used_s = min(loan.used_s, now_s)

    def worthwhile(
        self, reducers: Sequence[Reducer], for_s: float, waiting: Mapping[model.JobId, int], view: ClusterView
    ) -> Sequence[Reducer]:
        """Return the reducers whose suspension pays."""
        least, index = min(waiting.values()), view.layout.index
        room = view.free()[model.MEMORY] // max(1, least)
        found = []
        for reducer in reducers:
            place = index[reducer.task.node]
            worth = self.worth(reducer, for_s, place)
            pays = worth.is_worthwhile and room[place] > 0
            if pays and self._guard.allows(Part.SUSPENSION, reducer.job.job, view.now_s):
                room[place] -= 1
                self._decided[reducer] = _Loan(view.now_s, view.now_s + for_s, worth.gain_s / for_s, worth)
                found.append(reducer)
        return found

    def worth(self, reducer: Reducer, for_s: float, place: int) -> Worth:
        """Return what it is worth to suspend a reducer."""
        task_class = reducer.job.classes.get(reducer.task.task_class)  # None once its job has begun a later step
        if task_class is None or (seconds := task_class.estimates.duration_s(task_class.resources)) is None:
            return NEUTRAL
        gain_s = float(self._prices.columns[0, place]) * reducer.task.resources.cpu_milli * for_s
        deviation_s = COPY_SHARE * (task_class.estimates.deviation_s() or 0.0)
        return Worth(gain_s, LATENCY_S + COPY_SHARE * seconds, deviation_s)

    def reason_for(self, reducer: Reducer) -> str:
        """Return why a reducer is suspended, with what that is worth."""
        worth = self._decided[reducer].worth
        return f"{REASON} (gain {worth.gain_s:.1f} s, cost {worth.cost_s:.1f} s)"


BEHIND = model.Verdict(
    code=model.Code.PATIENCE, message="the application has its minimum of executors, and jobs that go before it wait"
)
_GROWS_AFTER_S = 60.0
_PER_WAIT = 2.0
_ROWS = [model.CPU, model.MEMORY]
