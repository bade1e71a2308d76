"""IASM: interference-aware scheduling (4.4, Algorithm 1), as a filter over nodes.

A task request of a node becomes a mask over all nodes: where the predicted slowdown of a class is no more than what its
host's threshold allows. Only maps and reducers are judged; what else runs counts as a neighbour.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from boathouse_policies import model
from boathouse_policies.framework.questions import Filter, Hooks, Observer
from boathouse_policies.ila import metrics
from boathouse_policies.ila.alone import Alone
from boathouse_policies.ila.book import Book, Running
from boathouse_policies.ila.demand import STAGES, Demands, measured
from boathouse_policies.ila.learning import Learner
from boathouse_policies.ila.moment import Moment
from boathouse_policies.ila.thresholds import Thresholds

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where
    from boathouse_policies.framework.cycle_state import Assignment
    from boathouse_policies.ila.config import Config
    from boathouse_policies.ila.families import Model, Weights
    from boathouse_policies.model import FloatVector


class Interference(Filter, Hooks, Observer):
    """Predicts, judges and learns: a Filter, Hooks and an Observer.

    Args:
        config: The constants.

    Attributes:
        demands: What tasks use.
        learner: The model.
        book: What runs.
        report_every_s: Reports of running tasks are not used.
        measure_every_s: Instruments of nodes are.
    """

    by_node = True
    report_every_s = 0.0

    def __init__(self, config: Config) -> None:
        self.measure_every_s = config.measure_every_s
        self.demands = Demands(config)
        self.learner = Learner(config)
        self._config = config
        self.book = Book(config)
        self._thresholds = Thresholds(config)
        self._alone = Alone()
        self._classes: dict[model.ClassId, model.TaskClass] = {}
        self._of_job: dict[model.JobId, tuple[model.ClassId, ...]] = {}
        self._moment: Moment | None = None
        self._weights: tuple[Model, dict[metrics.Demand, Weights]] = (self.learner.model, {})
        self._accepted: dict[tuple[model.ClassId, model.NodeName], list[float]] = {}
        self._refused_s: dict[model.ClassId, float] = {}  # since when it was kept out everywhere

    # In a cycle

    def moment(self, state: CycleState) -> Moment:
        """The state of the cycle that a cycle state belongs to."""
        if self._moment is None or self._moment.state is not state:
            self.book.adopt(state.view.layout)
            self._accepted.clear()
            interference = self.learner.model
            if self._weights[0] is not interference or len(self._weights[1]) > _DEMANDS_KEPT:
                self._weights = interference, {}
            self._moment = Moment(state, self.book, self._thresholds, interference, self._config, self._weights[1])
        return self._moment

    def concerns(self, pending: PendingClass) -> bool:
        """Maps and reducers that are judged."""
        return self._judges(pending.task_class, pending.state.view.now_s)

    def key(self, pending: PendingClass) -> Hashable:
        """The demand."""
        return self.demands.of(pending.task_class)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Where Algorithm 1 accepts the class."""
        one = pending.task_class
        if not self._judges(one, state.view.now_s):
            return None
        return self.moment(state).accepts(self.demands.of(one), where)

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Whether Algorithm 1 accepts the class on one node."""
        one = pending.task_class
        if not self._judges(one, state.view.now_s):
            return True
        moment = self.moment(state)
        return bool(moment.slowdown_at(self.demands.of(one), node) <= moment.limits[node])

    def _judges(self, one: model.TaskClass, now_s: float) -> bool:
        """Whether a class may be kept out: maps and reducers that have not waited for too long."""
        if self._config.threshold is None or one.stage not in STAGES:
            return False
        return now_s - self._refused_s.get(one.id, math.inf) < self._config.longest_wait_s

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """How many hosts' neighbours would slow it down, or it them."""
        mask = self.mask(pending, state, slice(None))
        refused = 0 if mask is None else int((among & ~mask).sum())
        return [model.Refusal(reason=REASON, nodes=refused)] if refused else []

    def slowdown(self, pending: PendingClass, state: CycleState, where: Where) -> FloatVector:
        """The predicted slowdown on some nodes."""
        return self.moment(state).slowdown(self.demands.of(pending.task_class))[where]

    def slowdown_at(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """The predicted slowdown on one node."""
        return self.moment(state).slowdown_at(self.demands.of(pending.task_class), node)

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """A task was placed: the rest of the cycle reckons with it."""
        one, moment = assignment.pending.task_class, self.moment(state)
        self._refused_s.pop(one.id, None)
        moment.place(assignment.node, self.demands.of(one), ours=one.stage in STAGES)
        host = self.book.hosts.places[assignment.node]
        name = state.view.layout.names[assignment.node]
        self._accepted.setdefault((one.id, name), []).append(moment.thresholds.reached(host))

    def refused(self, pending: PendingClass, state: CycleState) -> tuple[bool, float | None]:
        """Whether some node on offer has room for a class; and where all that have refuse it, when to look again."""
        one, now_s, moment = pending.task_class, state.view.now_s, self.moment(state)
        room, accepted = moment.outcome(pending, self.demands.of(one))
        if accepted or not room or not self._judges(one, now_s):
            return room, None
        self._refused_s.setdefault(one.id, now_s)
        return room, math.ceil(min(moment.thresholds.ripe_s, now_s + self._config.recheck_s))

    # Learning

    def observe(self, event: model.Event) -> None:
        """Keep account of what runs, and learn from what ended."""
        match event:
            case model.Measured():  # the most frequent first
                self.book.measured(event.name, event.usage, event.now_s)
            case model.Placed():
                self._placed(event)
            case model.Started():
                self.book.started(event.task, event.now_s)
            case model.Finished():
                self._finished(event)
            case model.Failed():
                self.book.gone(event.task, event.now_s)
            case model.Submitted():
                self._submitted(event)
            case model.Ended():
                self._ended(event.job)
            case _:
                pass

    def _submitted(self, event: model.Submitted) -> None:
        self._classes.update({one.id: one for one in event.classes})
        self._of_job[event.job.id] = tuple(one.id for one in event.classes)
        self.demands.submitted(event.job, event.classes)

    def _ended(self, job: model.JobId) -> None:
        for one in self._of_job.pop(job, ()):
            del self._classes[one]
            self._refused_s.pop(one, None)
            self.demands.forget(one)
            self._alone.forget(one)
            self.book.forget(one)

    def _placed(self, event: model.Placed) -> None:
        one = self._classes.get(event.task_class)
        size, far = event.resources.cpu_milli, event.distance > model.Distance.SERVER
        demand = metrics.Demand(size / 1000, 0.0, 0.0)
        if one is not None:
            demand = self.demands.far(one) if far and self.demands.knows(one.id) else self.demands.of(one)
        running = Running(
            event.task_class,
            event.node,
            size,
            demand,
            far,
            one is None or not self.demands.knows(one.id),
            one is None or one.stage is not model.Stage.MAP,
            event.now_s,
        )
        self.book.placed(event.task, running)
        reached = self._accepted.get((event.task_class, event.node))
        if reached:
            host = self.book.host_of(event.node)
            if host is not None:
                self._thresholds.placed(host, reached.pop(0))

    def _finished(self, event: model.Finished) -> None:
        around = self.book.gone(event.task, event.now_s)
        one = self._classes.get(event.task_class)
        if one is None or one.stage not in STAGES or event.duration_s <= 0:
            return
        told = one.estimates.duration_s(one.resources)
        is_map = one.stage is model.Stage.MAP
        # A reducer waits for maps: what it uses on average is by its real run time.
        alone_s = (is_map and (told or self._alone.seconds(one.id))) or event.duration_s
        now = measured(event.counters, alone_s, self._config.disk_mb_per_s)
        demand = self.demands.ended(one.id, now)
        self.book.rate(one.id, demand, event.now_s)
        if event.counters.get("remote_bytes", 0.0):
            self.demands.ended_far(
                one.id, measured(event.counters, event.duration_s, self._config.disk_mb_per_s, far=True)
            )
            return
        if not is_map or around is None:
            return  # a reducer waits for maps, and a remote map for the network: neither tells of neighbours
        system = self.book.around(around, now, event.node)
        if system is None:
            return
        if told is None:
            self._alone.ended(one.id, event.duration_s, self.learner.model, system, now)
            if self._alone.seconds(one.id) is None:
                return
        if self.learner.observe(system, now, event.duration_s / alone_s):
            self._thresholds.error = self.learner.error

    def dump(self) -> Mapping[str, Any]:
        """The model and the programs' demands."""
        return {"learner": self.learner.dump(), "programs": self.demands.dump()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump."""
        self.learner.load(state.get("learner", {}))
        self._thresholds.error = self.learner.error
        self.demands.load(state.get("programs", {}))


_DEMANDS_KEPT = 4096
REASON = "would slow tasks of their host down"
