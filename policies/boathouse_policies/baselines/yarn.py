"""YARN's fair scheduler as the YARN-ME paper compares with (3.3): by memory held, with node reservations.

The job that holds least memory goes first. With reservations, a node that cannot take its next task is kept for it, and
nobody else may use that node until it got a task there or has no task left to place; a job may have any number of nodes
kept. Without them, the next job in the order is tried (backfill).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.baselines.placement import Placement, scorer
from boathouse_policies.framework import Profile
from boathouse_policies.framework.extension import JobOrder, Reserve

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from boathouse_policies.framework import Layout, Scratch, Want, Where


class MemoryHeld(JobOrder):
    """The job that holds least memory first; ties by submission, then id."""

    lasts = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """Bytes held."""
        return float(usage[model.MEMORY])


class LockedNodes(Reserve):
    """Nodes kept for the first job that they cannot take, and locked for all others."""

    by_node = idle_once_all_kept = True

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or for this class."""
        if not scratch.kept:
            return None
        own = want.task_class.id
        kept = scratch.kept
        return np.array([kept.get(node, own) == own for node in places_of(where, scratch)], np.bool_)

    def passes(self, want: Want, scratch: Scratch, node: int) -> bool:
        """The same of one node."""
        own = want.task_class.id
        return scratch.kept.get(node, own) == own

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """All nodes on offer that are kept for nobody and would, empty, hold the class' ideal size."""
        return keep_unkept(want, scratch)

    def passing(self, scratch: Scratch) -> Collection[model.ClassId]:
        """Those whom the nodes are kept for."""
        return scratch.owners()


def places_of(where: Where, scratch: Scratch) -> Sequence[int]:
    """Return the places of some nodes as plain numbers."""
    if isinstance(where, slice):
        return range(*where.indices(len(scratch.offered)))
    places: list[int] = where.tolist()
    return places


def keep_unkept(want: Want, scratch: Scratch) -> Sequence[model.Hold]:
    """Keep nodes on offer for a class that are kept for nobody and would, empty, hold its ideal size.

    All of them; or those that lack least of it, where only so many may be kept (`Scratch.most_kept`).
    """
    if scratch.all_kept:
        return ()
    places = [node for node in scratch.offered_places() if node not in scratch.kept]
    places = may_be_kept(want, scratch, places)
    if scratch.most_kept is not None:
        if len(places) > scratch.most_kept:
            lacking = np.maximum(want.need - scratch.free[want.rows][:, places], 0) / want.need
            places = np.array(places)[lacking.max(axis=0).argsort(kind="stable")].tolist()
        places = places[: scratch.most_kept]
    for node in places:
        scratch.keep(node, want.task_class.id)
    names = scratch.view.layout.names
    return [_hold(want, names[node]) for node in places]


def may_be_kept(want: Want, scratch: Scratch, places: Sequence[int]) -> list[int]:
    """Return the nodes for which waiting makes sense: the class may use them, and they are large enough when empty."""
    view = scratch.view
    large_enough = view.layout.large_enough(view.axis.vector(want.task_class.resources))
    possible = large_enough & want.eligibility.mask
    return [node for node in places if possible[node]]


def _hold(want: Want, node: model.NodeName) -> model.Hold:
    return model.Hold(task_class=want.task_class, job=want.job, verdict=_verdict(node), node=node)


@functools.lru_cache(maxsize=8192)
def _verdict(node: model.NodeName) -> model.Verdict:
    return model.Verdict(code=model.Code.JOB_ORDER, message=f"{node} is kept for it until there is room")


def build(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `yarn`."""
    return Profile(name="yarn", order=MemoryHeld(), score=scorer(placement), reserve=LockedNodes(), node_driven=True)


def build_without_reservations(placement: Placement = Placement.LEAST_LOADED) -> Profile:
    """The profile `yarn-no-reservations`."""
    return Profile(name="yarn-no-reservations", order=MemoryHeld(), score=scorer(placement))
