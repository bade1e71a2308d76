"""Where YARN puts Spark's executors, blind to what runs there: what the iKayak paper compares with (5.1, 5.2).

A node is chosen for each executor before anything is known of what runs there, in the order in which nodes happen to
ask: here by name, begun anywhere (a hash of the class). An executor that finds no room gets the next node of that
order reserved (2.1): what comes free there goes to nobody else, and the executor to no other node, until it fits.

* SpreadOut (spark.deploy.spreadOut) takes the nodes in turn, NonSpreadOut fills one after the other. Spark's standalone
  master, which has them, reserves nothing; the paper means both as placements on YARN, so both reserve here.
* YARN-client hosts one Spark application at a time (5.1), with its driver outside of the cluster: that is how the
  application is submitted (`boathouse_sim` leaves drivers out for this profile). YARN-cluster hosts any number.
* YARN gives whichever node asks first one executor at a time: SpreadOut. So `yarn-cluster` decides as `spread-out`.
* Only executors reserve. Map and reduce tasks are so small that they fit as soon as anything ends (2.1).
* Jobs are served by their dominant share; the paper names no order.
"""

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines import LEAST_LOADED, FairShare
from boathouse_policies.baselines.yarn import ReservedNodes, reservation
from boathouse_policies.framework import (
    PREDICATES,
    CycleState,
    Filter,
    Observer,
    PendingClass,
    Profile,
    RunningTasks,
    Score,
    Where,
)

HEARTBEAT_S = 1.0  # between two chances to reserve (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms)


@dataclasses.dataclass(frozen=True, slots=True)
class InTurn(Score):
    """The node whose turn it is: each gets one executor in a round if they are spread, else as many as fit."""

    spread: bool

    def turns(self, pending: PendingClass, state: CycleState) -> model.IntVector:
        """Return when each node is next, the least first, shape [N]; if spread, one passed over keeps its turn."""
        count, placed = len(state.view.nodes), state.placed(pending.task_class.id)
        first = int.from_bytes(hashlib.blake2b(pending.task_class.id.encode(), digest_size=4).digest(), "big")
        ranks: model.IntVector = (np.arange(count) - first) % count  # the order in which nodes ask
        return placed + (ranks - placed) % count if self.spread else ranks

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return minus the node's turn."""
        return -self.turns(pending, state)[where].astype(np.float64)


class OneApplication(Filter, Observer):
    """Filter: the Spark application submitted first has the cluster's executors to itself until it ends."""

    def __init__(self) -> None:
        self._applications: dict[model.JobId, model.Job] = {}

    def observe(self, event: model.Event) -> None:
        """Learn which applications there are."""
        if isinstance(event, model.Submitted) and not _SPARK.isdisjoint(
            task_class.stage for task_class in event.classes
        ):
            self._applications[event.job.id] = event.job
        elif isinstance(event, model.Ended):
            self._applications.pop(event.job, None)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return that an application that is not the first may go nowhere."""
        return None if self.has_turn(pending) else np.zeros(len(state.offered), np.bool_)[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:  # noqa: ARG002 - the protocol's
        """Return that all of them are refused."""
        return [model.Refusal(reason=f"Spark application {self._first(pending)} runs", nodes=int(among.sum()))]

    def has_turn(self, pending: PendingClass) -> bool:
        """Return whether a class is of the first application, or of none."""
        return pending.task_class.stage not in _SPARK or pending.job.id == self._first(pending)

    def _first(self, pending: PendingClass) -> model.JobId:
        return min((job.submitted_s, job.id) for job in (pending.job, *self._applications.values()))[1]


class Reservations(ReservedNodes):
    """Nodes reserved for executors that found no room, in the order of their turns."""

    def __init__(self, order: InTurn, running: RunningTasks, applications: OneApplication | None = None) -> None:
        self._order, self._running, self._applications = order, running, applications

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where no other class has a reservation; if the class has reserved enough nodes, those nodes alone."""
        free = super().mask(pending, state, where)
        own = [node for node, owner in state.reserved.items() if owner == pending.task_class.id]
        if free is None or not own or self._takes(pending, state)[own].sum() < pending.left:
            return free
        only = np.zeros(len(state.offered), np.bool_)
        only[own] = True
        return free & only[where]

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve as many nodes as take all that are pending.

        What this cycle placed is not counted by node yet: then at the next heartbeat.
        """
        task_class, missing = pending.task_class, pending.left
        has_turn = self._applications is None or self._applications.has_turn(pending)
        if task_class.stage is not model.Stage.EXECUTOR or not has_turn:
            return ()
        if state.placed(task_class.id) > state.view.by_class.get(task_class.id, 0):
            until_s = state.view.now_s + HEARTBEAT_S
            return (model.Wait(task_class=task_class, job=pending.job, verdict=_COUNTED_LATER, until_s=until_s),)
        found, takes = [], self._takes(pending, state)
        for node in np.argsort(self._order.turns(pending, state), kind="stable").tolist():
            owner = state.reserved.get(node)
            if missing > 0 and takes[node] and owner in {None, task_class.id}:
                missing -= int(takes[node])
                if owner is None:
                    state.reserve(node, task_class.id)
                    found.append(reservation(pending, state.view.layout.names[node]))
        return found

    def _takes(self, pending: PendingClass, state: CycleState) -> model.IntVector:
        """Return how many more executors each node would be reserved for if nothing else ran there, shape [N]."""
        layout, rows = state.view.layout, pending.shape.rows
        spare = (layout.allocatable[rows] // pending.shape.need).min(axis=0)
        for task in self._running.of(pending.task_class.id):
            if task.node in layout.index:
                spare[layout.index[task.node]] -= 1
        most = 1 if self._order.spread else np.iinfo(np.int64).max
        return np.where(state.reservable(pending), spare.clip(0, most), 0)


_SPARK = {model.Stage.DRIVER, model.Stage.EXECUTOR}
_COUNTED_LATER = model.Verdict(
    code=model.Code.JOB_ORDER, message="its executors are counted again at the next heartbeat"
)


def build(name: str, score: Score = LEAST_LOADED, *, spread: bool = True, alone: bool = False) -> Profile:
    """Build one of the profiles `spread-out`, `non-spread-out`, `yarn-client` and `yarn-cluster`."""
    running, order = RunningTasks(), InTurn(spread)
    applications = (OneApplication(),) if alone else ()
    return Profile(
        name=name,
        order=FairShare(),
        filters=(*PREDICATES, *applications),
        score=score,
        scores={model.Stage.EXECUTOR: order},
        reserve=Reservations(order, running, *applications),
        observers=(running, *applications),
        running=running,
    )
