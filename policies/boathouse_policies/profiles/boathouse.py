"""The profile `boathouse`, which combines the papers.

| decision | whose it is |
|---|---|
| whose turn | FSPY: least remaining virtual size first |
| a driver's or executor's node | iKayak: most free; else nodes are reserved for it |
| a map's or reducer's node | ILA: not beside neighbours that harm, while it pays; the closest; then the least slowed |
| its memory | YARN-ME: the ideal, or less where that pays and the job ends no later, in FSPY's order |
| its CPU | iKayak: less, for maps at their input, where memory is ideal |
| reducers that lack map output | iKayak: suspended where that pays; their CPU goes to maps |
| executors beyond the minimum | none while jobs that go before wait |
| clusters of nodes | Koala: by the controller of its own clusters (`koala`) |

What pays, `worth` says; `guard` switches a part off that turns out not to.

Where two would decide the same:

1. ILA's refusal stands: where neighbours would harm, nothing is made smaller to fit.
2. Closeness before size: at its input a task takes less memory, or a share of the CPU, before it goes elsewhere whole
   (iKayak's Figure 6; YARN-ME bounds what it costs by the job's end). Only where no close node will do, it waits (ILA).
3. Of one task either memory is taken or CPU, never both: YARN-ME first.
4. A node that iKayak or ageing reserves is open to tasks that end before its owner could start there (YARN-ME's rule),
   for a while to jobs that go before the owner, and to nobody else. YARN-ME itself reserves none: FSPY's order with
   ageing takes that part.
5. CPU that a suspended reducer lends goes to maps only, its own job's first.
6. What FSPY puts first and cannot be placed is passed over: the next in order goes on.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from boathouse_policies import fspy, ikayak, ila, model, yarn_me
from boathouse_policies.baselines import LEAST_LOADED, Closest
from boathouse_policies.framework import (
    PREDICATES,
    CycleState,
    Filter,
    Hooks,
    PendingClass,
    Profile,
    ReservationAge,
    Reserve,
    ReservedNode,
    RunningTasks,
    SchedulingQueue,
    Score,
    Sized,
    Sizer,
    Where,
)
from boathouse_policies.framework.queue import NO_CLASSES
from boathouse_policies.fspy import AgeingReserve, SizeBased
from boathouse_policies.ikayak import SPARK
from boathouse_policies.ikayak.placement import Executors
from boathouse_policies.ikayak.shrinking import Shrinking
from boathouse_policies.ila import Interference, Retry
from boathouse_policies.profiles.guard import Guard
from boathouse_policies.profiles.switchback import Switchback
from boathouse_policies.profiles.worth import Growing, Lending, Prices, Refusing, Smaller
from boathouse_policies.yarn_me import Passing


@dataclasses.dataclass(frozen=True, eq=False)
class LeastInterference(Score):
    """A score within -1..1: where neighbours slow a task down least; maps that must be shrunk come after all others."""

    interference: Interference  # the predicted slowdown, negated (ILA)
    shrinking: Shrinking  # knows which maps must be shrunk

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return the scores; the highest wins."""
        score: model.FloatVector = -1.0 / self.interference.score(pending, state, where)
        if pending.task_class.stage is model.Stage.MAP:
            score -= ~self.shrinking.whole(pending, state, where)
        return score

    def score_on(self, pending: PendingClass, state: CycleState, node: int) -> float:
        """Return the score of one node."""
        score = -1.0 / self.interference.score_on(pending, state, node)
        if pending.task_class.stage is _MAP and not self.shrinking.whole(pending, state, node):
            score -= 1.0
        return score


@dataclasses.dataclass(frozen=True, eq=False)
class OneResourceLess(Sizer, Filter):
    """Sizer and filter: a task has less memory, or less CPU, or neither, never both."""

    memory: Sizer  # decides memory; its answer stands where it is less than the ideal (YARN-ME)
    cpu: Shrinking  # decides CPU, and how many tasks together, where memory is ideal (iKayak)

    by_node = True
    reason = "node(s) with too little memory and too little CPU at once: a task is made smaller in one of them only"

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether the class has maps."""
        return pending.task_class.stage is model.Stage.MAP

    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the least of each resource; the mask excludes nodes without more than that of both."""
        ideal = task_class.resources
        return model.Resources(
            cpu_milli=self.cpu.least(task_class).cpu_milli,
            memory_bytes=self.memory.least(task_class).memory_bytes,
            ephemeral_storage_bytes=ideal.ephemeral_storage_bytes,
            extended=ideal.extended,
        )

    def size(self, pending: PendingClass, node: int, state: CycleState) -> Sized | model.Verdict:
        """Size memory first; CPU where nothing was taken of memory."""
        sized = self.memory.size(pending, node, state)
        return self.cpu.size(pending, node, state) if sized is pending.ideal else sized

    def size_together(self, pending: PendingClass, state: CycleState) -> Sized | None:
        """Shrink memory: no gang has less CPU."""
        return self.memory.size_together(pending, state)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where all memory or all CPU is free; with all memory, where the CPU's sizer agrees."""
        if pending.task_class.stage is not model.Stage.MAP:
            return None
        ideal = pending.task_class.resources
        memory: model.BoolVector = state.free[model.MEMORY, where] >= ideal.memory_bytes
        cpu: model.BoolVector = state.free[model.CPU, where] >= ideal.cpu_milli
        if cpu.all():
            return None
        passed = self.cpu.mask(pending, state, where)
        return cpu | memory if passed is None else cpu | (memory & passed)

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return whether all memory or all CPU is free on one node; with all memory, the CPU's answer."""
        ideal, free = pending.task_class.resources, state.free_on(node)
        if pending.task_class.stage is not _MAP or free[model.CPU] >= ideal.cpu_milli:
            return True
        return free[model.MEMORY] >= ideal.memory_bytes and self.cpu.passes(pending, state, node)


class Backfill(Hooks):
    """Who may use a reserved node because its job goes before the owner's.

    The order decides as if no node were reserved, for tasks whose run time is known, and for drivers and executors:
    applications of one size waited beside idle nodes for one another. The older a reservation, the smaller must a job
    be to pass it: after `_PASSED_FOR_S` nobody does, so that an owner waits for a bounded time.
    """

    def __init__(self, order: SizeBased) -> None:
        self._order, self._classes = order, NO_CLASSES

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """Begin a cycle: note its classes, to find the owners' jobs."""
        self._classes = queue.sorted_classes()

    def mask(self, pending: PendingClass, state: CycleState) -> model.BoolVector:
        """Return the reserved nodes that a class may use, shape [N]."""
        mask = np.zeros(len(state.offered), np.bool_)
        if state.reserved and self._ends_s(pending) < _PASSED_FOR_S:
            mask[[node for node in state.reserved if self.passes(pending, state, node)]] = True
        return mask

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return whether a class may use one reserved node."""
        owner, now_s = state.reserved[node], state.view.now_s
        place, since_s = self._classes.places.get(owner), state.reserved_since_s(node, owner)
        left = 1.0 - (0.0 if since_s is None else now_s - since_s) / _PASSED_FOR_S
        if place is None or left * _PASSED_FOR_S <= self._ends_s(pending):
            return False
        return self._order.precedes(pending.job, self._classes.queued[place].job, state, left)

    @staticmethod
    def _ends_s(pending: PendingClass) -> float:
        """Return the run time; 0 for drivers and executors, which end with their application only."""
        if pending.task_class.stage in SPARK:
            return 0.0
        seconds = pending.task_class.estimates.duration_s(pending.task_class.resources)
        return math.inf if seconds is None else seconds


@dataclasses.dataclass(frozen=True, eq=False)
class ByStage(Reserve):
    """Reserve nodes by stage, closed to all but a few others.

    A reserved node is open to its owner's job, to tasks that end before it could start, and to tasks of jobs that go
    before the owner: a reservation is worth what its owner is worth in the order, and more with its age.
    """

    executors: Executors  # reserves nodes for drivers and executors (iKayak)
    aged: AgeingReserve  # reserves a node for whoever waited too long (FSPY)
    retry: Retry  # sees at once whom no node takes (ILA); asked while nobody is aged
    passing_early: Passing  # says who ends in time (YARN-ME)
    ahead: Backfill  # says who goes before the owner

    by_node = True
    reserves_for_gangs = True  # executors that must start together have nodes reserved for them too

    def is_idle(self, state: CycleState) -> bool:
        """Return whether no node is reserved, nor will be."""
        return self.executors.is_idle(state) and self.aged.is_idle(state)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return the nodes that are reserved for no class or that the class may pass, shape [N]; None for all."""
        in_time, own = self.passing_early.mask(pending, state, where), self.executors.mask(pending, state, where)
        if in_time is None or own is None:
            return None
        passed = in_time | own
        if not passed.all():
            passed |= self.ahead.mask(pending, state)[where]
        return passed

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return whether one node is reserved for no class, or the class may pass there."""
        if node not in state.reserved:
            return True
        return (
            self.passing_early.passes(pending, state, node)
            or self.executors.passes(pending, state, node)
            or self.ahead.passes(pending, state, node)
        )

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve nodes for a class that found none."""
        if pending.task_class.stage in SPARK:
            return self.executors.reserve(pending, state)
        return [*self.aged.reserve(pending, state), *self.retry.reserve(pending, state)]

    def reservations(self) -> Sequence[ReservedNode]:
        """Return those for executors and drivers."""
        return self.executors.reservations()

    def refused(
        self, pending_classes: Iterable[PendingClass], state: CycleState
    ) -> Iterable[tuple[PendingClass, model.Verdict, model.Wait | None]]:
        """Return the classes that no node takes, with the reason."""
        return self.retry.refused(pending_classes, state) if self.aged.order.nobody_aged else ()


_PASSED_FOR_S = 300.0  # age of a reservation from which on nobody passes its owner
_MAP = model.Stage.MAP  # to look into an enum each time is slow


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The constants of each paper, and what the combination changes in them."""

    # A job of unknown size is ranked as one whose tasks take 10 s (the paper: it goes first while such jobs hold less
    # than their share): small jobs waited for nodes that were reserved for large ones of unknown size. With 5 and 20 s
    # mean job times are the same. A job that outlived its virtual size is ranked by the work that is left of it, and
    # small jobs are not probed. Sizes are predicted by the model that has predicted the program's jobs best so far.
    fspy: "fspy.Config" = dataclasses.field(
        default_factory=lambda: fspy.Config(assumed_task_s=10.0, late_first=False, probed_from=0.1, best_model=True)
    )
    # It shrinks CPU only, or memory would be shrunk twice. Remaining times are predicted by what has predicted the
    # program's reducers best so far.
    ikayak: "ikayak.Config" = dataclasses.field(
        default_factory=lambda: ikayak.Config(shrink=ikayak.Shrink.CPU, best_predictor=True)
    )
    # It refuses hosts where a task would take twice as long (the paper: any longer). Under the paper's threshold tasks
    # waited for longer than neighbours would have cost them; as a rank, slowdowns of less count in full. Slowdowns are
    # predicted by the model that has predicted the program's tasks best so far.
    ila: "ila.Config" = dataclasses.field(default_factory=lambda: ila.Config(threshold=2.0, best_model=True))
    yarn_me: "yarn_me.Config" = dataclasses.field(default_factory=yarn_me.Config)
    switchback_s: float = 0.0  # length of the blocks of time in which the guard tries what parts are worth; 0 for none


_PAPERS = Config()


def build(score: Score = LEAST_LOADED, config: Config = _PAPERS) -> Profile:
    """Return the profile `boathouse`; `score` ranks nodes for stages that none of the papers speaks of."""
    order = fspy.SizeBased(config.fspy)
    running, prices = RunningTasks(), Prices()
    guard = Switchback(config.switchback_s) if config.switchback_s else Guard()
    spark = ikayak.Parts(running, config.ikayak, functools.partial(Lending, prices=prices, guard=guard))
    interference, delay = Refusing(config.ila, guard), ila.AdaptiveDelay(config.ila)
    look_ahead = functools.partial(yarn_me.Timeline, job_key=order.expected)
    regular = LeastInterference(interference, spark.shrinking)
    elastic = Smaller(config.yarn_me, regular, yarn_me.Outlook(running), look_ahead, prices, guard, spark.book)
    sizes = OneResourceLess(elastic, spark.shrinking)
    nearest = Closest(elastic, ila.LEVEL)
    passing, retry = yarn_me.Passing(elastic), ila.Retry(interference)
    ahead, growing = Backfill(order), Growing(order, delay)
    aged, of_spark = fspy.AgeingReserve(order, apart=ikayak.SPARK), (spark.executors, spark.suspension, spark.shrinking)
    return Profile(
        name="boathouse",
        order=order,
        filters=(*PREDICATES, spark.suspension, sizes, elastic, interference),
        score=score,
        scores={
            **dict.fromkeys((model.Stage.MAP, model.Stage.REDUCE), nearest),
            **dict.fromkeys(ikayak.SPARK, spark.most_free),
        },
        patience=growing,
        sizer=sizes,
        reserve=ByStage(spark.executors, aged, retry, passing, ahead),
        controllers=(prices, elastic, spark.suspension),
        observers=(running, order, elastic.outlook, elastic.disks, spark.book, interference, delay, guard),
        running=running,
        figures=(order, interference, elastic, ReservationAge(apart=ikayak.SPARK), guard, *spark.figures),
        hooks=(order, aged, passing, ahead, growing, *of_spark, elastic, interference, delay),
    )
