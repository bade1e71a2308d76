"""Why a class is pending, in short and in the words of kube-scheduler, and how long nodes have been reserved."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from boathouse_policies import model
from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
from boathouse_policies.framework.questions import Figure, Figures
from boathouse_policies.framework.scheduling_profile import Profile

RESERVED = model.Verdict(code=model.Code.JOB_ORDER, message="the nodes that fit are kept for jobs ahead")
NOT_OFFERED = model.Verdict(code=model.Code.NOT_OFFERED, message="the nodes that fit take no more in this cycle")
UNSCHEDULABLE = model.Verdict(code=model.Code.UNSCHEDULABLE)


def refusal(
    pending: PendingClass, profile: Profile, state: CycleState, *, is_passed_over: bool = False
) -> model.Verdict:
    """Return why no node takes a class: the reserve may have said that all which fit are reserved for others."""
    view = state.view
    if view.layout.nodes and 1 not in view.layout.large_enough(pending.least).tobytes():  # quicker than any()
        return model.Verdict(code=model.Code.NEVER_FITS, message="no node is large enough, even empty")
    if state.offers == len(view.layout) and not profile.reserve.concerns(pending):
        return UNSCHEDULABLE  # every node was asked
    if not len(passing := _passing(pending, profile, state)):
        return UNSCHEDULABLE
    unreserved = None if is_passed_over else profile.reserve.mask(pending, state, passing)
    if is_passed_over or (unreserved is not None and not unreserved.any()):
        return RESERVED
    return UNSCHEDULABLE if state.offered[passing].any() else NOT_OFFERED


def _passing(pending: PendingClass, profile: Profile, state: CycleState) -> npt.NDArray[np.intp]:
    """Return the places of the nodes where all filters pass, whether the node is offered, or reserved, or not."""
    room = state.room(pending)
    nodes = (room if pending.eligibility.everywhere else room & pending.eligibility.mask).nonzero()[0]
    for filter_ in [filter_ for filter_ in profile.filters if not filter_.of_shape and filter_.concerns(pending)]:
        if len(nodes) and (passed := filter_.mask(pending, state, nodes)) is not None:
            nodes = nodes[passed]
    return nodes


def explain(pending: PendingClass, profile: Profile, state: CycleState) -> model.Diagnosis:
    """Diagnose what is left of a class, over all nodes, offered or not, from the state that the cycle ended with."""
    verdict, refusals = pending.verdict, _refusals(pending, profile, state)
    scarce = _scarce(pending, state, verdict.code) if verdict.code in _ABOUT_NODES else None
    return model.Diagnosis(
        task_class=pending.task_class.id,
        job=pending.job.id,
        count=pending.left,
        code=verdict.code,
        message=_message(verdict, refusals, state),
        refusals=refusals,
        scarce=None if scarce is None else state.view.axis.names[scarce],
        asked=0 if scarce is None else int(state.view.axis.vector(pending.ideal.resources)[scarce]),
        least=0 if scarce is None else int(pending.least[scarce]),
        largest=0 if scarce is None else int(state.view.layout.allocatable[scarce].max(initial=0)),
        figures=tuple([figure for plugin in profile.figures for figure in plugin.of_pending(pending, state)]),
    )


_ABOUT_NODES = {model.Code.UNSCHEDULABLE, model.Code.NEVER_FITS, model.Code.GANG, model.Code.JOB_ORDER}


def _refusals(pending: PendingClass, profile: Profile, state: CycleState) -> tuple[model.Refusal, ...]:
    """Return the refusals of each filter for the nodes that the filters before it passed."""
    among = np.ones(state.free.shape[1], np.bool_)
    found: list[model.Refusal] = []
    for filter_ in [filter_ for filter_ in profile.filters if filter_.concerns(pending)]:
        found += filter_.refusals(pending, state, among)
        if (passed := filter_.mask(pending, state, slice(None))) is not None:
            among &= passed
    return tuple(sorted(found, key=lambda refusal: (-refusal.nodes, refusal.reason)))


def _message(verdict: model.Verdict, refusals: tuple[model.Refusal, ...], state: CycleState) -> str:
    reasons = ", ".join(f"{refusal.nodes} {refusal.reason}" for refusal in refusals)
    turns = f"0/{state.free.shape[1]} nodes are available{f': {reasons}' if reasons else ''}."
    if verdict.code is model.Code.UNSCHEDULABLE:
        return turns
    tells = reasons and verdict.code in (model.Code.NEVER_FITS, model.Code.GANG)
    return f"{verdict.message}: {turns}" if tells else verdict.message


def _scarce(pending: PendingClass, state: CycleState, code: model.Code) -> int | None:
    """Return the resource that most nodes lack; ties by the cluster's use of it, then by row.

    Of the allowed nodes what is free counts; for what never fits, what each node has when it is empty.
    """
    layout, rows = state.view.layout, pending.shape.rows
    had = layout.allocatable if code is model.Code.NEVER_FITS else state.free[:, pending.eligibility.mask]
    lacking = (had[rows] < pending.shape.need).sum(axis=1)
    if not lacking.any():
        return None
    use = 1.0 - state.free.sum(axis=1)[rows] * layout.inverse_totals[rows]
    return int(min(zip(-lacking, -use, rows, strict=True))[2])


class ReservationAge(Figures):
    """Says since when nodes are reserved for classes and placed tasks, but for stages that another policy explains."""

    def __init__(self, apart: Collection[model.Stage] = ()) -> None:
        self._apart = apart

    def of_pending(self, pending: PendingClass, state: CycleState) -> Sequence[Figure]:
        """Return how many seconds ago the first of the nodes was reserved that are reserved for the class."""
        own = pending.task_class.id
        return self._figure(pending, state, [node for node, owner in state.reserved.items() if owner == own])

    def of_placed(self, assignment: Assignment, state: CycleState) -> Sequence[Figure]:
        """Return for how many seconds the node was reserved for the class."""
        return self._figure(assignment.pending, state, (assignment.node,))

    def _figure(self, pending: PendingClass, state: CycleState, nodes: Collection[int]) -> Sequence[Figure]:
        if pending.task_class.stage in self._apart:
            return ()
        since_s = [at_s for node in nodes if (at_s := state.reserved_since_s(node, pending.task_class.id)) is not None]
        return (("reservedForSeconds", state.view.now_s - min(since_s)),) if since_s else ()
