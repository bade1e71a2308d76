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

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.fair import FairShare
from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.baselines.yarn import LockedNodes
from boathouse_policies.framework import Profile, RunningTasks
from boathouse_policies.framework.predicates import PREDICATES
from boathouse_policies.framework.questions import Filter, Observer, Reserve, Score

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Where

HEARTBEAT_S = 1.0
"""Between two chances to reserve (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms)."""


class Strategy(Protocol):
    """In which order an application's executors take nodes."""

    def turns(self, ranks: model.IntVector, placed: int) -> model.IntVector:
        """When each node is next.

        Args:
            ranks: 0..N-1: the order in which nodes ask, shape [N].
            placed: Executors that have a node.

        Returns:
            The least goes first, shape [N].
        """
        ...

    def taken(self, spare: model.IntVector) -> model.IntVector:
        """How many executors a node is reserved for at once, of those that it can still take, both of shape [N]."""
        ...


class SpreadOut:
    """One on each node, then the next round."""

    def turns(self, ranks: model.IntVector, placed: int) -> model.IntVector:
        """The round-robin's next turn; a node that was passed over keeps its earlier one until it is asked again."""
        turns: model.IntVector = placed + (ranks - placed) % len(ranks)
        return turns

    def taken(self, spare: model.IntVector) -> model.IntVector:
        """One."""
        return np.minimum(spare, 1)


class NonSpreadOut:
    """As many as fit on the first node, then the next."""

    def turns(self, ranks: model.IntVector, placed: int) -> model.IntVector:  # noqa: ARG002 - the protocol's
        """Always the same."""
        return ranks

    def taken(self, spare: model.IntVector) -> model.IntVector:
        """All."""
        return spare


class InTurn(Score):
    """Score of executors: the node whose turn it is."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Minus its turn."""
        turns = self._strategy.turns(_ranks(pending, state), state.placed(pending.task_class.id))
        return -turns[where].astype(np.float64)


_LOCKED = LockedNodes()


class Reservations(Reserve):
    """Nodes reserved for executors that found no room, in the strategy's order."""

    passing_changes = True

    def __init__(self, strategy: Strategy, running: RunningTasks, one: OneApplication | None = None) -> None:
        self._strategy, self._running, self._one = strategy, running, one

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where nobody else reserved; for whom all are reserved, on those nodes alone."""
        free = _LOCKED.mask(pending, state, where)
        mine = [node for node, owner in state.reserved.items() if owner == pending.task_class.id]
        if free is None or not mine or self._takes(pending, state)[mine].sum() < pending.left:
            return free
        only = np.zeros(state.free.shape[1], np.bool_)
        only[mine] = True
        return free & only[where]

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve as many nodes as take all that wait.

        What this cycle placed is not counted by node yet: then at the next heartbeat.
        """
        if pending.task_class.stage is not model.Stage.EXECUTOR or not (
            self._one is None or self._one.has_turn(pending)
        ):
            return ()
        here = pending.task_class.id
        if state.placed(here) > state.view.by_class.get(here, 0):
            until_s = state.view.now_s + HEARTBEAT_S
            return (
                model.Wait(task_class=pending.task_class, job=pending.job, verdict=_COUNTED_LATER, until_s=until_s),
            )
        held, missing, takes = [], pending.left, self._takes(pending, state)
        for node in np.argsort(self._strategy.turns(_ranks(pending, state), state.placed(here)), kind="stable"):
            owner = state.reserved.get(int(node))
            if missing > 0 and takes[node] and owner in {None, here}:
                missing -= int(takes[node])
                if owner is None:
                    state.reserve(int(node), here)
                    name = state.view.layout.names[node]
                    held.append(_reservation(pending, name))
        return held

    def passing(self, state: CycleState) -> Collection[model.ClassId]:
        """Those whom the nodes are reserved for."""
        return state.owners()

    def _takes(self, pending: PendingClass, state: CycleState) -> model.IntVector:
        """How many more executors each node would be reserved for if nothing else ran there, shape [N]."""
        rows = pending.rows
        whole = state.view.layout.allocatable
        if rows[-1] >= len(whole):
            return np.zeros(whole.shape[1], np.int64)  # nobody has that resource
        spare = (whole[rows] // pending.need).min(axis=0) - self._here(pending, state)
        return self._strategy.taken(np.where(pending.eligibility.mask, np.maximum(spare, 0), 0))

    def _here(self, pending: PendingClass, state: CycleState) -> model.IntVector:
        """Executors on each node, without those placed in this cycle, shape [N]."""
        index = state.view.layout.index
        places = [index[one.node] for one in self._running.of(pending.task_class.id) if one.node in index]
        counts: model.IntVector = np.bincount(np.array(places, np.intp), minlength=len(state.view.nodes))
        return counts


class OneApplication(Filter, Observer):
    """Filter: the Spark application submitted first has the cluster's executors to itself until it ends."""

    def __init__(self) -> None:
        self._applications: dict[model.JobId, float] = {}

    def observe(self, event: model.Event) -> None:
        """Who came, who ended."""
        if isinstance(event, model.Submitted) and any(one.stage in _SPARK for one in event.classes):
            self._applications[event.job.id] = event.job.submitted_s
        elif isinstance(event, model.Ended):
            self._applications.pop(event.job, None)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Nowhere for an application that is not the first."""
        if self.has_turn(pending):
            return None
        return np.zeros(state.free.shape[1], np.bool_)[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:  # noqa: ARG002 - the protocol's
        """All of them."""
        return [model.Refusal(reason=f"Spark application {self._first(pending)} runs", nodes=int(among.sum()))]

    def has_turn(self, pending: PendingClass) -> bool:
        """Whether it is of the first application, or of none."""
        return pending.task_class.stage not in _SPARK or pending.job.id == self._first(pending)

    def _first(self, pending: PendingClass) -> model.JobId:
        known = {pending.job.id: pending.job.submitted_s, **self._applications}
        return min(known, key=lambda job: (known[job], job))

    def dump(self) -> Mapping[str, Any]:
        """Nothing: the shell submits every job again after a restart."""
        return {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Nothing."""


_SPARK = {model.Stage.DRIVER, model.Stage.EXECUTOR}


def _ranks(pending: PendingClass, state: CycleState) -> model.IntVector:
    """The order in which nodes ask, as far as a class sees it."""
    count = len(state.view.nodes)
    first = int.from_bytes(hashlib.blake2b(pending.task_class.id.encode(), digest_size=4).digest(), "big")
    ranks: model.IntVector = (np.arange(count) - first) % count
    return ranks


def _reservation(pending: PendingClass, node: model.NodeName) -> model.Reservation:
    verdict = model.Verdict(code=model.Code.JOB_ORDER, message=f"{node} is reserved for it until there is room")
    return model.Reservation(task_class=pending.task_class, job=pending.job, verdict=verdict, node=node)


_COUNTED_LATER = model.Verdict(
    code=model.Code.JOB_ORDER, message="its executors are counted again at the next heartbeat"
)


def _build(name: str, strategy: Strategy, placement: Placement, *, alone: bool = False) -> Profile:
    running, one = RunningTasks(), OneApplication() if alone else None
    return Profile(
        name=name,
        order=FairShare(),
        filters=PREDICATES if one is None else (*PREDICATES, one),
        score=scorer(placement),
        scores={model.Stage.EXECUTOR: InTurn(strategy)},
        reserve=Reservations(strategy, running, one),
        observers=(running,) if one is None else (running, one),
    )


def build_spread_out(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `spread-out`."""
    return _build("spread-out", SpreadOut(), placement)


def build_non_spread_out(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `non-spread-out`."""
    return _build("non-spread-out", NonSpreadOut(), placement)


def build_client(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `yarn-client`."""
    return _build("yarn-client", SpreadOut(), placement, alone=True)


def build_cluster(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `yarn-cluster`."""
    return _build("yarn-cluster", SpreadOut(), placement)
