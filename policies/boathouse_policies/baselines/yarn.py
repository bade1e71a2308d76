"""YARN's schedulers: the fair scheduler as the YARN-ME paper compares with (3.3), and the CapacityScheduler.

Both reserve nodes: a node that cannot take the next task is reserved for that task's class. Other jobs cannot use the
node until the class gets a task there or has none left to place; a job may have any number of nodes reserved. Earlier
classes of the owner's job and the members of its gang can: a lost driver goes before the executors that own the nodes.

* `yarn`: the job that holds least memory goes first. The profile `yarn-no-reservations` has the same order and tries
  the next job instead (backfill).
* `capacity`: within a queue the application submitted first goes first (FifoOrderingPolicy). The queue that holds the
  least of what it is guaranteed is served first (AbstractCSQueue.getUsedCapacity). That is the framework's order
  between queues: a queue's weight is its guaranteed share, its limits are its maximum. What a queue leaves idle others
  may take; nothing is taken back by force (pre-emption between queues is off by default there, and absent here).

The CapacityScheduler compares sizes in all resources here (DominantResourceCalculator); Hadoop's default looks at
memory alone. User limits and the share for masters are left out: a simulated queue has one user, and masters are
small.
"""

import functools
from collections.abc import Collection, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines import LEAST_LOADED
from boathouse_policies.framework import CycleState, JobOrder, PendingClass, Profile, Reserve, Score, Where


class ReservedNodes(Reserve):
    """Nodes reserved for a class each, and locked for other jobs and for later classes."""

    passing_changes = True

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where the node is not reserved, or is open to this class."""
        if not state.reserved:
            return None
        own, reserved = pending.task_class.id, state.reserved
        closed = {owner for owner in set(reserved.values()) if own not in state.open_to(owner)}
        return np.array([reserved.get(node) not in closed for node in places_of(where, state)], np.bool_)

    def passing(self, state: CycleState) -> Collection[model.ClassId]:
        """Return the owners, and the classes to which their nodes are open."""
        return state.owners()


class LockedNodes(ReservedNodes):
    """Nodes reserved for the first class that they cannot take."""

    by_node = idle_once_all_reserved = True

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Return the answer for one node."""
        return (owner := state.reserved.get(node)) is None or pending.task_class.id in state.open_to(owner)

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve the unreserved nodes on offer that the class may use and that would, empty, hold its ideal size.

        All of them; or those that lack least of it, where only so many may be reserved (`CycleState.most_reserved`).
        """
        if state.all_reserved:
            return ()
        view, most, task_class = state.view, state.most_reserved, pending.task_class
        possible = view.layout.large_enough(view.axis.vector(task_class.resources)) & state.reservable(pending)
        places = [node for node in state.offered_places() if node not in state.reserved and possible[node]]
        if most is not None and len(places) > most:
            lacking = np.maximum(pending.shape.need - state.free[pending.shape.rows][:, places], 0) / pending.shape.need
            places = np.array(places)[lacking.max(axis=0).argsort(kind="stable")[:most]].tolist()
        for node in places:
            state.reserve(node, task_class.id)
        return [reservation(pending, view.layout.names[node]) for node in places]


def places_of(where: Where, state: CycleState) -> Sequence[int]:
    """Return the places of some nodes as plain numbers."""
    all_places = range(len(state.offered))
    places: Sequence[int] = all_places[where] if isinstance(where, slice) else where.tolist()
    return places


def reservation(pending: PendingClass, node: model.NodeName) -> model.Reservation:
    """Return the reservation of a node for a class."""
    return model.Reservation(task_class=pending.task_class, job=pending.job, verdict=_verdict(node), node=node)


@functools.lru_cache(maxsize=8192)
def _verdict(node: model.NodeName) -> model.Verdict:
    return model.Verdict(code=model.Code.JOB_ORDER, message=f"{node} is reserved for it until there is room")


def build(name: str, order: JobOrder, score: Score = LEAST_LOADED) -> Profile:
    """Build a profile with node reservations: `yarn` or `capacity`."""
    return Profile(name=name, order=order, score=score, reserve=LockedNodes(), node_driven=True)
