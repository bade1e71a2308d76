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
    from collections.abc import Sequence

    from boathouse_policies.framework import Layout, Scratch, Want, Where


class MemoryHeld(JobOrder):
    """The job that holds least memory first; ties by submission, then id."""

    lasts = True

    def key(self, job: model.Job, usage: Sequence[int], layout: Layout) -> float:  # noqa: ARG002 - the protocol's
        """Bytes held."""
        return float(usage[model.MEMORY])


class LockedNodes(Reserve):
    """Nodes kept for the first job that they cannot take, and locked for all others."""

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """True where the node is kept for nobody, or for this class."""
        if not scratch.kept:
            return None
        own = want.task_class.id
        if isinstance(where, slice) and where.start is not None:  # one node that changed
            owners = (scratch.kept.get(node, own) for node in range(where.start, where.stop))
            return np.array([owner == own for owner in owners])
        mask = np.ones(scratch.free.shape[1], np.bool_)
        mask[[node for node, owner in scratch.kept.items() if owner != own]] = False
        return mask[where]

    def keep(self, want: Want, scratch: Scratch) -> Sequence[model.Hold]:
        """All nodes on offer that are kept for nobody and would, empty, hold the class' ideal size.

        Once all are kept, nobody but their owners can be placed in this cycle.
        """
        held = keep_unkept(want, scratch)
        if scratch.all_kept:
            scratch.confine(scratch.owners())
        return held


def keep_unkept(want: Want, scratch: Scratch) -> Sequence[model.Hold]:
    """Keep nodes on offer for a class that are kept for nobody and would, empty, hold its ideal size.

    All of them; or those that lack least of it, where only so many may be kept (`Scratch.most_kept`).
    """
    if scratch.all_kept:
        return ()
    held: list[model.Hold] = []
    places = scratch.offered.nonzero()[0]
    if scratch.most_kept is not None:
        lacking = np.maximum(want.need - scratch.free[want.rows][:, places], 0) / want.need
        places = places[lacking.max(axis=0).argsort(kind="stable")]
    for node in places.tolist():
        if scratch.most_kept is not None and len(held) >= scratch.most_kept:
            break
        if node not in scratch.kept and may_be_kept(want, scratch, node):
            scratch.keep(node, want.task_class.id)
            held.append(_hold(want, scratch.view.layout.names[node]))
    return held


def may_be_kept(want: Want, scratch: Scratch, node: int) -> bool:
    """Whether waiting for the node makes sense: the class may use it, and it is large enough when empty."""
    view = scratch.view
    enough = view.layout.large_enough(view.axis.vector(want.task_class.resources))
    return bool(want.eligibility.mask[node] and enough[node])


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
