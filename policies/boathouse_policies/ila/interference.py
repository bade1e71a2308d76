"""IASM: interference-aware scheduling (4.4, Algorithm 1), as a filter over nodes.

A task request of a node becomes a mask over all nodes: where the predicted slowdown of a class is no more than what its
host's threshold allows. Only maps and reducers are judged; what else runs counts as a neighbour.
"""

import dataclasses
import functools
import math
import statistics
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import (
    CycleState,
    Figure,
    Figures,
    Filter,
    Hooks,
    Observer,
    PendingClass,
    Reserve,
    SchedulingQueue,
    Score,
    Where,
)
from boathouse_policies.framework.cycle_state import Assignment
from boathouse_policies.framework.programs import Contest
from boathouse_policies.ila.config import Config
from boathouse_policies.ila.iasm import Judged, Slowdowns, Thresholds
from boathouse_policies.ila.learning import Learners
from boathouse_policies.ila.monitoring import Monitor, Running
from boathouse_policies.ila.profiling import STAGES, ClassProfile, Demand, Profiles, measured


class Interference(Filter, Score, Hooks, Observer, Figures):
    """Predicts, judges and learns."""

    by_node = True
    reason = "would slow tasks of their host down"
    slowdowns: Slowdowns

    def __init__(self, config: Config) -> None:
        self.config = config
        self.measure_every_s = config.measure_every_s  # instruments of nodes are used; reports of running tasks are not
        self.profiles = Profiles(config)
        self.learners = Learners(config)
        self.monitor = Monitor(config.disk_mb_per_s)
        self.thresholds = Thresholds(config)  # H_d of each host
        self._contest = Contest(config.programs_kept, _MODELS)
        self._limits: model.FloatVector = np.zeros(0)  # as of the last cycle
        self._reached: dict[model.TaskId, float] = {}  # H_d as their acceptance made it, until they are placed
        self.accepted: dict[model.TaskId, tuple[Figure, ...]] = {}  # what is said of the tasks placed in this cycle
        self._weights = functools.lru_cache(_DEMANDS_KEPT)(lambda of, demand: of.weights(demand))

    def _judged(self, pending: PendingClass) -> Judged:
        """Return what a class is judged by: its demand, and the model of its namespace that is best at its program."""
        learner, best = self.learners.of(pending.job.namespace), self._best(pending.task_class.id)
        demand = self.profiles.demand(pending.task_class)
        if best is None:
            return Judged(demand, learner.model, learner.margin)
        place, error = best
        return Judged(demand, learner.models[place], min(error, self.config.largest_error))

    def _best(self, task_class: model.ClassId) -> tuple[int, float] | None:
        """Return the best model of a class' program and its mean relative error; None where the paper's predicts."""
        known = self.profiles.get(task_class) if self.config.best_model else None
        program = None if known is None else known.program
        error = None if program is None else self._contest.error(program)
        return None if program is None or error is None else (self._contest.best(program), error)

    # Questions

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether these are maps or reducers that have not been refused everywhere for too long."""
        if pending.task_class.stage not in STAGES or self.config.threshold is None:
            return False
        known = self.profiles.get(pending.task_class.id)
        return known is None or not self._is_overdue(known, pending.state.view.now_s)

    def _is_overdue(self, known: ClassProfile, now_s: float) -> bool:
        return now_s - known.refused_s >= self.config.longest_wait_s

    def key(self, pending: PendingClass) -> Hashable:
        """Return the demand and the model."""
        return self._judged(pending)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """Return where Algorithm 1 accepts the class."""
        if not self.concerns(pending):
            return None
        slowdowns, task = self.slowdowns, self._judged(pending)
        accepted: model.BoolVector = slowdowns.on_all(task)[where] <= slowdowns.limits(task.margin)[where]
        return accepted

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:  # noqa: ARG002 - the protocol's
        """Return whether Algorithm 1 accepts the class on one node."""
        return self.slowdowns.accepts(self._judged(pending), node)

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:  # noqa: ARG002 - the protocol's
        """Return the predicted slowdown, negated."""
        return -self.slowdowns.on_all(self._judged(pending))[where]

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:  # noqa: ARG002 - the protocol's
        """Return the predicted slowdown on one node, negated."""
        return -self.slowdowns.on(self._judged(pending), node)

    def retry(self, pending: PendingClass) -> tuple[bool, model.Wait | None]:
        """Return whether some node on offer has room for a class; and where all that have refuse it, when to retry."""
        has_room, is_accepted = self.slowdowns.takers(pending, self._judged(pending))
        if is_accepted or not has_room or not self.concerns(pending):
            return has_room, None
        now_s = pending.state.view.now_s
        due_s = min(self.slowdowns.thresholds.long_idle_s, now_s + self.recheck_after_s(pending))
        until_s = max(math.ceil(due_s), math.floor(now_s) + 1)  # a wait that is over now would be asked for for ever
        return True, model.Wait(task_class=pending.task_class, job=pending.job, verdict=SLOWED, until_s=until_s)

    def recheck_after_s(self, pending: PendingClass) -> float:  # noqa: ARG002 - for those who compare
        """Return after how long a class that is refused everywhere is considered again, events aside."""
        return self.config.recheck_s

    # Hooks

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Begin a cycle: note full hosts, and predict the slowdown of running tasks."""
        self.monitor.adopt(state.view.layout)
        self.slowdowns = Slowdowns(state, self.monitor, self.thresholds, self._weights, self.config)
        self._limits = self.slowdowns.limits(min(self._error(), self.config.largest_error))
        self._reached.clear()
        self.accepted.clear()

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """Count a placed task in the predictions for the rest of the cycle."""
        task_class, node = assignment.pending.task_class, assignment.node
        known, slowdowns, task = self.profiles.get(task_class.id), self.slowdowns, assignment.pick.task.id
        accepted = slowdowns.place(node, self._judged(assignment.pending), is_judged=task_class.stage in STAGES)
        is_refused = accepted is not None and accepted[0] > accepted[1]
        # An overdue class goes on until a host accepts it: else each of its tasks would wait for as long as the first.
        if known is not None and not (is_refused and self._is_overdue(known, state.view.now_s)):
            known.refused_s = math.inf
        if accepted is not None:
            best = self._best(task_class.id)
            standing = () if best is None else (("slowdownModel", float(best[0])), ("slowdownError", best[1]))
            self.accepted[task] = (*_figures(*accepted), *standing)
        self._reached[task] = float(slowdowns.thresholds.reached[self.monitor.hosts.places[node]])

    def undone(self, assignment: Assignment, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Remove a placement from the predictions for the rest of the cycle."""
        self.slowdowns.undo(assignment.node, self.profiles.demand(assignment.pending.task_class))
        del self._reached[assignment.pick.task.id]

    def waits(self, wait: model.Wait, state: CycleState) -> None:
        """Record when a class was first refused everywhere."""
        known = self.profiles.get(wait.task_class.id)
        if known is not None and wait.verdict is SLOWED:
            known.refused_s = min(known.refused_s, state.view.now_s)

    # Figures

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:  # noqa: ARG002 - the protocol's
        """Return the slowdown that was predicted for a task, and the one that was allowed."""
        return self.accepted.get(assignment.pick.task.id, ())

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return the least slowdown that is predicted on a node with room, and the one that is allowed there."""
        if not self.concerns(pending):
            return ()
        places = (state.room(pending) & pending.eligibility.mask).nonzero()[0]
        if not len(places):
            return ()
        task = self._judged(pending)
        slowdowns, limits = self.slowdowns.on_all(task)[places], self.slowdowns.limits(task.margin)
        best = int(slowdowns.argmin())
        return _figures(float(slowdowns[best]), float(limits[places[best]]))

    def of_policy(self) -> Mapping[str, Sequence[float]]:
        """Return the models' error, and the slowdown that is allowed on each node that does not allow any."""
        limits = self._limits[np.isfinite(self._limits)]
        return {"interferenceError": [self._error()], "interferenceThreshold": limits.tolist()}

    def _error(self) -> float:
        errors = [learner.error for learner in self.learners]
        return statistics.median_low(errors) if errors else self.learners.first.error

    # Learning

    def observe(self, event: model.Event) -> None:
        """Keep account of what runs, and learn from what ended."""
        match event:
            case model.Measured():  # the most frequent first
                self.monitor.measured(event.name, event.usage, event.now_s)
            case model.Placed():
                self._placed(event)
            case model.Started():
                self.monitor.started(event.task, event.now_s)
            case model.Finished():
                self._finished(event)
            case model.Failed():
                self.monitor.gone(event.task, event.now_s)
            case model.Refused(decision=model.Create() | model.Bind() as decision):
                self._reached.pop(decision.task.id, None)
            case model.Submitted():
                self.profiles.submitted(event.job, event.classes)
            case model.Ended():
                self.profiles.forget(event.job)
            case _:
                pass

    def _placed(self, event: model.Placed) -> None:
        known, cpus = self.profiles.get(event.task_class), event.resources.cpu_milli / 1000
        running = Running(
            task_class=event.task_class,
            node=event.node,
            resources=event.resources,
            demand=Demand(cpus, 0.0, 0.0) if known is None else known.demand_at(event.distance),
            is_remote=event.distance > model.Distance.SERVER,
            is_guess=known is None or known.is_guess,
            idles=known is None or not known.is_map,
            since_s=event.now_s,
        )
        self.monitor.placed(event.task, running)
        reached = self._reached.pop(event.task, None)
        if reached is not None and running.place is not None:
            self.thresholds.placed(self.monitor.hosts.places[running.place], reached)

    def _finished(self, event: model.Finished) -> None:
        given, used = self.monitor.given(event.task), self.monitor.gone(event.task, event.now_s)
        known, disk_mb_per_s = self.profiles.get(event.task_class), self.config.disk_mb_per_s
        if known is None or known.task_class.stage not in STAGES or event.duration_s <= 0:
            return
        stated_s = self._stated_s(known.task_class, given)
        alone_s = self._alone_s(known, stated_s, event)
        most_cpus = min(known.most_cpus, self.monitor.most_cpus)
        own = measured(event.counters, alone_s, disk_mb_per_s).bounded(most_cpus)
        self.profiles.ended(known, own)
        self.monitor.rate(event.task_class, known.demand, event.now_s)
        if event.counters.get("remote_bytes", 0.0):
            remote = measured(event.counters, event.duration_s, disk_mb_per_s, without_remote=True)
            known.remote_demand = self.profiles.smooth(known.remote_demand, remote.bounded(most_cpus))
        elif known.is_map and used is not None:
            # A reducer waits for maps, and a remote map for the network: neither tells of neighbours.
            system = self.monitor.around(*used, own)
            if stated_s is None:
                known.ended_beside(event.duration_s, self.learners.of(known.namespace).predict(system, own))
                if known.alone_s is None:
                    return
            slowdown = event.duration_s / alone_s
            self._judge(known, system, own, slowdown)
            self.learners.observe(known.namespace, system, own, slowdown)

    def _judge(self, known: ClassProfile, system: list[float], own: Demand, slowdown: float) -> None:
        """Compare what each model would have predicted with the slowdown of a task that ended."""
        if known.program is None or not self.config.best_model:
            return
        rows = np.array([*system, *own])[:, None]
        predicted = [float(predictor.predict(rows)[0]) for predictor in self.learners.of(known.namespace).models]
        self._contest.judge(known.program, [abs(prediction - slowdown) / slowdown for prediction in predicted])

    def _stated_s(self, task_class: model.TaskClass, given: model.Resources | None) -> float | None:
        """Return the estimated run time of a task with the memory that it was given; None where it is not known."""
        estimates = task_class.estimates
        stated_s, deviation_s = estimates.duration_s(given or task_class.resources), estimates.deviation_s()
        if stated_s is None or deviation_s is None or deviation_s <= self.config.uncertain * stated_s:
            return stated_s
        return None

    def _alone_s(self, known: ClassProfile, stated_s: float | None, event: model.Finished) -> float:
        """Return how long a task would have run without neighbours, within what is possible."""
        # A reducer waits for maps: what it uses on average is by its real run time.
        alone_s = (known.is_map and (stated_s or known.alone_s)) or event.duration_s
        most = self.config.largest_slowdown
        computes_s = min(event.counters.get("cpu_s", 0.0) / known.most_cpus, event.duration_s)
        return min(max(alone_s, computes_s, event.duration_s / most), event.duration_s * most)

    def dump(self) -> Mapping[str, Any]:
        """Return the namespaces' models and the programs' demands."""
        contest = {"contest": self._contest.dump()} if self.config.best_model else {}
        return {"learners": self.learners.dump(), "programs": self.profiles.dump(), **contest}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump. The model that earlier versions had of all namespaces is not taken over."""
        self.learners.load(state.get("learners", {}))
        self.profiles.load(state.get("programs", {}))
        self._contest.load(state.get("contest"))


@dataclasses.dataclass(eq=False)
class Retry(Reserve):
    """Retries what was refused everywhere: no event tells that a host has had idle slots for long enough."""

    interference: Interference

    def is_idle(self, state: CycleState) -> bool:  # noqa: ARG002 - the protocol's
        """Return True: a class without room waits for room."""
        return True

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Wait]:  # noqa: ARG002 - the protocol's
        """Return when to retry."""
        _, wait = self.interference.retry(pending)
        return () if wait is None else (wait,)

    def refused(
        self, pending_classes: Iterable[PendingClass], state: CycleState
    ) -> Iterator[tuple[PendingClass, model.Verdict, model.Wait | None]]:
        """Return, of these, the maps and reducers for which no node has room, or none of those that have."""
        for pending in pending_classes:
            if pending.task_class.stage not in STAGES or pending.task_class.gang_min:
                continue
            has_room, wait = self.interference.retry(pending)
            if not has_room:
                yield pending, _NO_ROOM if state.view.layout.large_enough(pending.least).any() else _NEVER, None
            elif wait is not None:
                yield pending, SLOWED, wait


def _figures(slowdown: float, threshold: float) -> tuple[Figure, ...]:
    """Return the figures; on an idle host any slowdown is allowed."""
    figures = (("slowdown", slowdown), ("threshold", threshold))
    return figures if math.isfinite(slowdown + threshold) else figures[: math.isfinite(slowdown)]


SLOWED = model.Verdict(
    code=model.Code.PATIENCE, message="every node with room is on a host whose tasks it would slow down, or they it"
)
_NO_ROOM = model.Verdict(code=model.Code.UNSCHEDULABLE)
_NEVER = model.Verdict(code=model.Code.NEVER_FITS, message="no node is large enough, even empty")
_DEMANDS_KEPT = 4096
_MODELS = 3  # of `Learner.models`
