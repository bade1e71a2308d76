"""Executors and drivers: which node, and which nodes are kept for them until there is room (3.1, Algorithms 1 and 2).

Where a node has room (tier 1) the cycle places at once, on the node with most free. Where none has, a node of tier 2 or
3 is kept for each executor: closed to others, so that what comes free there adds up. Such a reservation is derived
anew at each look: the admitted minimum (`gang_min`, or all that were asked for) minus what is bound; a crash loses only
its age. It is given up when a node of an earlier tier, or with a clearly shorter wait, appears, and when the executor
was placed elsewhere.

Deviation: at most half of the nodes are kept at once (`Config.kept_share`), so that maps and reducers are not shut out.
Only an application whose executors must start together, and for which nodes have been kept for longest, may have more,
and those of others: two that each keep half of what they need would wait for ever.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Hooks, Patience, Reserve, Score
from boathouse_policies.ikayak import waits
from boathouse_policies.ikayak.book import SPARK

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, SchedulingQueue, Where
    from boathouse_policies.ikayak.book import Book
    from boathouse_policies.ikayak.config import Config
    from boathouse_policies.ikayak.lending import Lending


class MostFree(Score):
    """Tier 1: the node with most free resource, by the scarcest one (Algorithm 1, line 5).

    Args:
        lending: CPU that is only lent is not free for executors.
    """

    def __init__(self, lending: Lending) -> None:
        self._lending = lending

    def key(self, pending: PendingClass) -> Hashable:  # noqa: ARG002 - the protocol's
        """Nothing: the answer depends on the shape alone."""
        return None

    def score(self, pending: PendingClass, state: CycleState, where: Where) -> model.FloatVector:
        """How many such executors would fit."""
        free = self._lending.free(state)[:, where]
        return waits.fitting(free, pending.least)


class Executors(Reserve, Patience, Hooks):
    """Reserve, Patience and Hooks of executors and drivers: `keep` chooses nodes, `mask` closes them, `wait` gives up.

    Args:
        config: The constants.
        book: What runs where.
        lending: CPU that is only lent is not free for executors.

    Attributes:
        keeps_for_gangs: It is asked for applications with a minimum too.
    """

    reserves_for_gangs = True

    def __init__(self, config: Config, book: Book, lending: Lending) -> None:
        self._config = config
        self._book = book
        self._lending = lending
        self._owners: dict[model.ClassId, model.JobId] = {}
        self._since_s: dict[model.JobId, float] = {}
        self._order: dict[model.JobId, list[int]] = {}

        self._pending = True

    # Hooks

    def begins(self, queue: SchedulingQueue, state: CycleState) -> None:  # noqa: ARG002 - the protocol's
        """A cycle begins: whether executors or drivers are pending."""
        self._pending = not SPARK.isdisjoint(queue.sorted_classes().stages)

    # Reserve

    def is_idle(self, state: CycleState) -> bool:
        """Whether no node is kept for anybody, nor will be."""
        return not self._pending and not state.reserved

    def concerns(self, pending: PendingClass) -> bool:
        """All classes, where nodes are kept."""
        return bool(pending.state.reserved)

    def key(self, pending: PendingClass) -> Hashable:
        """The job, whose own nodes are open to it."""
        return pending.job.id

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or for this job."""
        if not state.reserved:
            return None
        job = pending.job.id
        if isinstance(where, slice) and where.start is not None:  # one node that changed
            return np.array([self._is_open(state, node, job) for node in range(where.start, where.stop)])
        mask = np.ones(state.free.shape[1], np.bool_)
        mask[[node for node in state.reserved if not self._is_open(state, node, job)]] = False
        return mask[where]

    def _is_open(self, state: CycleState, node: int, job: model.JobId) -> bool:
        owner = state.reserved.get(node)
        return owner is None or self._job_of(owner) == job

    def _job_of(self, owner: model.ClassId) -> model.JobId | None:
        return self._owners.get(owner)

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Hold]:
        """An executor found no node: keep the best for it, and no other any more."""
        if pending.task_class.stage not in SPARK:
            return ()
        job = pending.job.id
        self._forget(state)
        self._owners[pending.task_class.id] = job
        asked = self._asked(pending, state)
        before = self._kept_for(job, state)
        since_s = self._since_s.setdefault(job, state.view.now_s)
        chosen = self._choose(pending, asked, before, state)
        for node in before:
            if node not in chosen:
                state.release(node)
        for node in chosen:
            if state.reserved.get(node, pending.task_class.id) != pending.task_class.id:
                state.release(node)  # kept by a younger one, or for another class of this job
        self._order[job] = chosen
        return [self._hold(pending, node, since_s, state) for node in chosen]

    def _hold(self, pending: PendingClass, node: int, since_s: float, state: CycleState) -> model.Hold:
        now_s, name = state.view.now_s, state.view.layout.names[node]
        message = f"{name} is kept for it until there is room, and nodes have been for {now_s - since_s:.0f} s"
        code = model.Code.GANG if pending.task_class.gang_min else model.Code.UNSCHEDULABLE
        verdict = model.Verdict(code=code, message=message)
        until_s = now_s + self._config.review_s
        return model.Hold(
            task_class=pending.task_class,
            job=pending.job,
            verdict=verdict,
            node=name,
            until_s=until_s,
        )

    def _asked(self, pending: PendingClass, state: CycleState) -> list[tuple[model.IntVector, int]]:
        """Sizes and numbers of what the job still needs: its minimum if it has one, else all that waits."""
        if not pending.task_class.gang_min:
            return [(pending.least, pending.left)]
        job = self._book.jobs.get(pending.job.id)
        gang = [one for one in job.classes.values() if one.gang_min] if job is not None else [pending.task_class]
        axis = state.view.axis
        short = [(axis.vector(one.resources), one.gang_min - state.placed(one.id)) for one in gang]
        return [(size, count) for size, count in short if count > 0]

    def _forget(self, state: CycleState) -> None:
        """Of jobs that nothing is kept for any more, and that are over."""
        if len(self._owners) > _OWNERS_KEPT:
            reserved = set(state.reserved.values())
            self._owners = {one: job for one, job in self._owners.items() if one in reserved}
        with_nodes = {self._job_of(owner) for owner in state.reserved.values()}
        self._since_s = {job: since_s for job, since_s in self._since_s.items() if job in with_nodes}
        self._order = {job: order for job, order in self._order.items() if job in with_nodes}

    def _kept_for(self, job: model.JobId, state: CycleState) -> list[int]:
        return sorted(node for node, owner in state.reserved.items() if self._job_of(owner) == job)

    # Algorithms 1 and 2

    def _choose(
        self, pending: PendingClass, asked: list[tuple[model.IntVector, int]], before: list[int], state: CycleState
    ) -> list[int]:
        """The nodes to keep, one executor after the other."""
        nodes = state.free.shape[1]
        if pending.task_class.gang_min and self._is_oldest(pending.job.id, state):
            may, most = np.ones(nodes, np.bool_), nodes  # or two minimums could wait for each other for ever
            may[[node for node, owner in state.reserved.items() if self._job_of(owner) is None]] = False
        else:
            others = len(state.reserved) - len(before)
            may, most = self._mine(pending, state), max(1, math.floor(self._config.kept_share * nodes)) - others
        liked = np.ones(nodes)
        liked[before] = self._config.better
        return self._fill(asked, self._prospects(pending, state, may), liked, most)

    def _is_oldest(self, job: model.JobId, state: CycleState) -> bool:
        """Whether nodes have been kept for no other application for longer; ties by id."""
        jobs = {owner for one in state.reserved.values() if (owner := self._job_of(one)) is not None} | {job}
        return job == min(jobs, key=lambda one: (self._since_s.get(one, math.inf), one))

    @staticmethod
    def _fill(
        asked: list[tuple[model.IntVector, int]], prospects: waits.Prospects, liked: model.FloatVector, most: int
    ) -> list[int]:
        chosen: list[int] = []
        for need, count in asked:
            for _ in range(count):
                node = prospects.best(need, liked)
                if node is None:
                    break
                if node not in chosen:
                    if len(chosen) >= most:
                        return chosen
                    chosen.append(node)
                prospects.take(node, need)
        return chosen

    def _mine(self, pending: PendingClass, state: CycleState) -> model.BoolVector:
        mask = np.ones(state.free.shape[1], np.bool_)
        mask[[node for node in state.reserved if not self._is_open(state, node, pending.job.id)]] = False
        return mask

    def _prospects(self, pending: PendingClass, state: CycleState, may: model.BoolVector) -> waits.Prospects:
        layout, now_s = state.view.layout, state.view.now_s
        least = pending.least[: len(layout.allocatable)]
        large = (layout.allocatable >= least[:, None]).all(axis=0) & bool((pending.least[len(least) :] <= 0).all())
        return waits.Prospects(
            self._lending.free(state),
            *self._book.columns(layout, now_s, self._lending.paused),
            may & pending.eligibility.mask & large & state.offered,
        )

    # Patience

    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Hold | None:
        """Never waits where there is room; gives up a node that was kept for what goes elsewhere now."""
        if pending.task_class.stage not in SPARK or not state.reserved:
            return None
        mine = self._kept_for(pending.job.id, state)
        if not mine or node in mine:
            return None
        missing = sum(count for _, count in self._asked(pending, state)) - 1
        order = self._order.get(pending.job.id, [])
        worst_first = sorted(mine, key=lambda one: order.index(one) if one in order else len(order), reverse=True)
        for one in worst_first[: max(0, len(mine) - missing)]:
            state.release(one)
        return None


_OWNERS_KEPT = 4096
