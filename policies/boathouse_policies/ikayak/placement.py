"""Executors and drivers: which node, and which nodes are reserved for them until there is room (3.1, Algorithms 1, 2).

What an executor can count on at each node is in three tiers over the whole cluster:

| tier | R_executor fits in | the best node | lines of Algorithm 1 |
|---|---|---|---|
| 1 | what is free | most free | 4-6 |
| 2 | that and what maps hold | most of both | 8-10 |
| 3 | that and what the first x reducers to end hold | the shortest wait: Algorithm 2 | 12-15 |

Tiers are over the cluster: a node of a later tier is taken only where there is none of an earlier one (readings). Every
resource must fit; "most" is by the scarcest one: how many such executors would fit. Wait is y_x, the remaining time of
the last reducer of the shortest sorted prefix that fits, or the last map's end where that is later (readings).

Where a node has room (tier 1) the cycle places at once, on the node with most free. Where none has, a node of tier 2 or
3 is reserved for each executor: closed to others, so that what comes free there adds up. The nodes are chosen anew at
each attempt: for the admitted minimum (`gang_min`, or all that were requested) minus what is bound; a crash loses only
a reservation's age. A node is released when one of an earlier tier, or with a clearly shorter wait, appears, and when
the executor was placed elsewhere.

Deviation: at most half of the nodes are reserved at once (`Config.kept_share`), so that maps and reducers are not shut
out. Only an application whose executors must start together, and for which nodes have been reserved for longest, may
have more, and those of others: two that each hold half of what they need would wait for ever. Such an application has
no fewer nodes than before as long as nodes may be kept for it (`framework.gathering`): predictions are wrong as long as
events of tasks are on their way, and what somebody else starts meanwhile on a node that was given up may last for long.
"""

import math
from collections.abc import Hashable, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines import fitting
from boathouse_policies.framework import (
    Assignment,
    CycleState,
    Figure,
    Figures,
    Gathering,
    Hooks,
    PendingClass,
    Reserve,
    ReservedNode,
    SchedulingQueue,
    Score,
    Where,
)
from boathouse_policies.framework.queue import NO_CLASSES
from boathouse_policies.ikayak.book import ROWS, SPARK, Book, Columns
from boathouse_policies.ikayak.config import Config
from boathouse_policies.ikayak.suspension import Suspension


def in_order_of_end(reducers: Columns) -> Columns:
    """Sort reducers by node and remaining time; `held` is what has come free on the node once each has ended."""
    order = np.lexsort((reducers.left_s, reducers.node))
    node, held = reducers.node[order], reducers.held[:, order]
    running = held.cumsum(axis=1)
    before = (running - held)[:, np.searchsorted(node, node)]  # the first of each node, less itself
    return Columns(node, running - before, reducers.left_s[order])


def waits_s(lacking: model.IntMatrix, freed: Columns) -> model.FloatVector:
    """Run Algorithm 2, lines 3-9: how long until each node's reducers have freed (`in_order_of_end`) what is lacking.

    Lacking is R_executor - (R_free + R_map), shape [R, N]. The wait, shape [N], is infinite where that is not enough.
    """
    found = np.where((lacking <= 0).all(axis=0), 0.0, np.inf)
    node = freed.node
    enough = (freed.held >= lacking[:ROWS, node]).all(axis=0) & (lacking[ROWS:, node] <= 0).all(axis=0)
    np.minimum.at(found, node[enough], freed.left_s[enough])
    return found


class Prospects:
    """What the nodes offer to executors, for one choice after the other, of those that `may` be chosen."""

    def __init__(self, free: model.IntMatrix, maps: Columns, reducers: Columns, may: model.BoolVector) -> None:
        self.free = free.copy()  # what is left of R_free, shape [R, N]
        self.soon = free.copy()  # what is left of R_free + R_map, shape [R, N]
        np.add.at(self.soon[:ROWS].T, maps.node, maps.held.T)
        self.may = may
        self.chosen_s: dict[int, float] = {}  # Wait^n of the nodes that were chosen, by place
        self._maps_s = np.zeros(free.shape[1])  # how long the last map of each node will still run
        np.maximum.at(self._maps_s, maps.node, maps.left_s)
        self._freed = in_order_of_end(reducers)

    def best(self, need: model.IntVector, liked: model.FloatVector) -> int | None:
        """Run Algorithm 1 for one executor, which needs R_executor: return the place of its node; None for none.

        A wait is multiplied by `liked`, below 1 for nodes that are kept already, shape [N].
        """
        for room in (self.free, self.soon):
            count = np.where(self.may, fitting(room, need), -np.inf)
            if count.max(initial=-np.inf) >= 1.0:
                node = int(np.where((liked < 1.0) & (count >= 1.0), count + _FIRST, count).argmax())
                self.chosen_s[node] = 0.0 if room is self.free else self._maps_s.item(node)
                return node
        wait_s = np.where(self.may, self.wait_s(need) * liked, np.inf)
        if not np.isfinite(wait_s).any():
            return None
        node = int(wait_s.argmin())
        self.chosen_s[node] = float(wait_s[node] / liked[node])
        return node

    def wait_s(self, need: model.IntVector) -> model.FloatVector:
        """Return Wait^n, shape [N]."""
        return np.maximum(waits_s(need[:, None] - self.soon, self._freed), self._maps_s)

    def take(self, node: int, need: model.IntVector) -> None:
        """Count an executor that will go there."""
        self.free[:, node] -= need
        self.soon[:, node] -= need


class MostFree(Score):
    """Tier 1: the node with most free resource, by the scarcest one (Algorithm 1, line 5). Lent CPU is not."""

    def __init__(self, suspension: Suspension) -> None:
        self._suspension = suspension

    def key(self, pending: PendingClass) -> Hashable:  # noqa: ARG002 - the protocol's
        """Return a constant: the answer depends on the shape alone."""
        return None

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """Return how many such executors would fit."""
        return fitting(self._suspension.free(state)[:, where], pending.least)


class Executors(Reserve, Hooks, Figures):
    """Reserve nodes for executors and drivers, and release them once one went elsewhere. Lent CPU is not free."""

    reserves_for_gangs = True

    def __init__(self, config: Config, book: Book, suspension: Suspension) -> None:
        self._config, self._book, self._suspension = config, book, suspension
        self._gathering = Gathering()
        self._since_s: dict[model.JobId, float] = {}
        self._wait_s: dict[tuple[model.JobId, model.NodeName], float] = {}
        self._reserved: tuple[ReservedNode, ...] = ()
        self._last_s = -math.inf
        self._columns: tuple[Columns, Columns] | None = None
        self._classes = NO_CLASSES

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:
        """Note since when nodes have been reserved for which applications: what is new, since the last cycle."""
        self._gathering.begins(queue, state)
        self._classes = queue.sorted_classes()
        self._columns = None
        jobs = {job for owner in state.reserved.values() if (job := self._job_of(owner)) is not None}
        self._since_s = {job: self._since_s.get(job, self._last_s) for job in jobs}
        self._last_s = state.view.now_s
        names, wait_s = state.view.layout.names, self._wait_s
        in_force = [(names[place], owner, self._job_of(owner)) for place, owner in state.reserved.items()]
        self._reserved = tuple(
            ReservedNode(node=node, task_class=of, since_s=self._since_s[job], wait_s=wait_s.get((job, node), 0.0))
            for node, of, job in in_force
            if job is not None
        )
        self._wait_s = {key: wait_s for key, wait_s in self._wait_s.items() if key[0] in jobs}

    def reservations(self) -> Sequence[ReservedNode]:
        """Return the nodes that were reserved for executors and drivers when the last cycle began."""
        return self._reserved

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return how long nodes have been reserved for the application, and how long it will still wait for them."""
        job, now_s, names = pending.job.id, state.view.now_s, state.view.layout.names
        own = self._reserved_for(job, state) if pending.task_class.stage in SPARK else ()
        if not own:
            return ()
        wait_s = max([self._wait_s.get((job, names[node]), 0.0) for node in own])
        return (("reservedForSeconds", now_s - self._since_s.get(job, now_s)), ("predictedWaitSeconds", wait_s))

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return how long the node was reserved, and the wait that was predicted; for a reducer, what predicts it."""
        pending = assignment.pending
        if pending.task_class.stage is model.Stage.REDUCE:
            return self._book.bank.standing(pending.job.kind or pending.job.id)
        if pending.task_class.stage not in SPARK or not self._reserved:
            return ()
        job, node, now_s = pending.job.id, state.view.layout.names[assignment.node], state.view.now_s
        for kept in self._reserved:
            if kept.node == node and self._job_of(kept.task_class) == job:
                return ("reservedForSeconds", now_s - kept.since_s), ("predictedWaitSeconds", kept.wait_s)
        return ()

    def placed(self, assignment: Assignment, state: CycleState) -> None:
        """Release the nodes, the last chosen first, that an executor needs no more that was placed elsewhere."""
        pending = assignment.pending
        if not state.reserved or pending.task_class.stage not in SPARK:
            return
        own = self._reserved_for(pending.job.id, state)
        missing = sum(count for _, count in self._requested(pending, state))
        if assignment.node in own or (missing and pending.task_class.gang_min):
            return  # a minimum that is not whole yet may be taken back
        for node in own[missing:]:
            state.release(node)

    def is_idle(self, state: CycleState) -> bool:
        """Return whether no node is reserved, nor will be."""
        return not state.reserved and SPARK.isdisjoint(self._classes.stages)

    def key(self, pending: PendingClass) -> Hashable:
        """Return the job, whose own nodes are open to it."""
        return pending.job.id

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return the nodes that are reserved for no class or for this job, shape [N]; None for all."""
        return self._open_to(pending, state)[where] if state.reserved else None

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return whether one node is reserved for no class, or for this job."""
        owner = state.reserved.get(node)
        return owner is None or self._job_of(owner) == pending.job.id

    def _open_to(self, pending: PendingClass, state: CycleState) -> model.BoolVector:
        mask = np.ones(len(state.offered), np.bool_)
        mask[[node for node in state.reserved if not self.passes(pending, state, node)]] = False
        return mask

    def _job_of(self, owner: model.ClassId) -> model.JobId | None:
        """Return the application that an executor or driver is of; None for other classes."""
        place = self._classes.places.get(owner)
        queued = None if place is None else self._classes.queued[place]
        return queued.job.id if queued is not None and queued.task_class.stage in SPARK else None

    def _reserved_for(self, job: model.JobId, state: CycleState) -> list[int]:
        return [node for node, owner in state.reserved.items() if self._job_of(owner) == job]

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve the best nodes for executors that found none, and release the others."""
        if pending.task_class.stage not in SPARK:
            return ()
        own = pending.task_class.id
        before = self._reserved_for(pending.job.id, state)
        refusal = self._gathering.refusal(pending.job, state) if pending.task_class.gang_min else None
        if refusal is not None:
            return [self._without_nodes(pending, before, refusal, state)]
        chosen = self._choose(pending, before, state)
        chosen += self._held(pending, before, chosen, state)
        for node, owner in list(state.reserved.items()):
            if owner != own if node in chosen else node in before:
                state.release(node)  # a worse one, or one of a younger application or of another class of this one
        return [self._reservation(pending, node, state) for node in chosen]

    def _without_nodes(
        self, pending: PendingClass, before: list[int], refusal: model.Verdict, state: CycleState
    ) -> model.Wait:
        for node in before:
            state.release(node)
        until_s = min(self._gathering.until_s(pending.job.id, state.view.now_s), state.view.now_s + _ASKED_AGAIN_S)
        return model.Wait(task_class=pending.task_class, job=pending.job, verdict=refusal, until_s=until_s)

    def _reservation(self, pending: PendingClass, node: int, state: CycleState) -> model.Reservation:
        now_s, name = state.view.now_s, state.view.layout.names[node]
        code, until_s = model.Code.UNSCHEDULABLE, now_s + self._config.review_s
        if pending.task_class.gang_min:
            code, ends_s = model.Code.GANG, self._gathering.until_s(pending.job.id, now_s)
            until_s = min(until_s, ends_s) if now_s < ends_s else until_s
        verdict = model.Verdict(code=code, message=f"{name} is reserved for it until there is room")
        return model.Reservation(
            task_class=pending.task_class, job=pending.job, verdict=verdict, node=name, until_s=until_s
        )

    def _requested(self, pending: PendingClass, state: CycleState) -> list[tuple[model.IntVector, int]]:
        """Return sizes and numbers of what the job still needs: its minimum if it has one, else all that is pending."""
        if not pending.task_class.gang_min:
            return [(pending.least, pending.left)]
        job = self._book.jobs.get(pending.job.id)
        classes = [pending.task_class] if job is None else job.classes.values()
        short = [(member.resources, member.gang_min - state.placed(member.id)) for member in classes if member.gang_min]
        return [(state.view.axis.vector(size), count) for size, count in short if count > 0]

    def _held(self, pending: PendingClass, before: list[int], chosen: list[int], state: CycleState) -> list[int]:
        """Return nodes that a minimum holds on to though they were not chosen: it has no fewer until it starts."""
        if not pending.task_class.gang_min:
            return []
        missing = sum(count for _, count in self._requested(pending, state))
        may = state.reservable(pending)
        remaining = [node for node in before if node not in chosen and may[node]]
        return remaining[: max(0, min(missing, len(before)) - len(chosen))]

    # Algorithms 1 and 2

    def _choose(self, pending: PendingClass, before: list[int], state: CycleState) -> list[int]:
        nodes = len(state.offered)
        if pending.task_class.gang_min and self._is_oldest(pending.job.id, state):
            may, most = np.ones(nodes, np.bool_), nodes  # or two minimums could wait for each other for ever
            may[[node for node, owner in state.reserved.items() if self._job_of(owner) is None]] = False
        else:
            may = self._open_to(pending, state)
            most = max(1, math.floor(self._config.kept_share * nodes)) - (len(state.reserved) - len(before))
        liked = np.ones(nodes)
        liked[before] = self._config.better
        prospects, chosen = self._prospects(pending, state, may), dict[int, float]()
        for need, count in self._requested(pending, state):
            for _ in range(count):
                node = prospects.best(need, liked)
                if node is None or (node not in chosen and len(chosen) >= most):
                    break
                chosen[node] = max(prospects.chosen_s[node], chosen.get(node, 0.0))
                prospects.take(node, need)
        names = state.view.layout.names
        self._wait_s |= {(pending.job.id, names[node]): wait_s for node, wait_s in chosen.items()}
        return list(chosen)

    def _is_oldest(self, job: model.JobId, state: CycleState) -> bool:
        """Return whether nodes have been reserved for no other application for longer; ties by id."""
        others = {other for owner in state.reserved.values() if (other := self._job_of(owner)) is not None}
        return job == min(others | {job}, key=lambda other: (self._since_s.get(other, state.view.now_s), other))

    def _prospects(self, pending: PendingClass, state: CycleState, may: model.BoolVector) -> Prospects:
        view, suspension = state.view, self._suspension
        if self._columns is None:  # for all applications of the cycle
            self._columns = self._book.columns(view.layout, view.now_s, suspension.paused)
        may = may & state.reservable(pending) & view.layout.large_enough(pending.least) & state.offered
        return Prospects(suspension.free(state), *self._columns, may)


_ASKED_AGAIN_S = 10.0  # how long the reason of a gang for which no node is kept may be out of date
_FIRST = 1e9  # above every count: a node that is kept already stays so within its tier
