"""Why a class waits, in one line in the manner of kube-scheduler, with what is scarce and who holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from boathouse_policies.framework.cycle_state import Scratch, Want
    from boathouse_policies.framework.policy import Profile

_HOLDERS = 3


def explain(want: Want, verdict: model.Verdict, count: int, profile: Profile, scratch: Scratch) -> model.Diagnosis:
    """Diagnose from the state that the cycle ended with, over all nodes, offered or not."""
    refusals = _refusals(want, profile, scratch)
    scarce = _scarce(want, scratch, verdict.code) if verdict.code in _ABOUT_NODES else None
    allocatable = scratch.view.layout.allocatable
    return model.Diagnosis(
        task_class=want.task_class.id,
        job=want.job.id,
        count=count,
        code=verdict.code,
        message=_message(verdict, refusals, scratch),
        refusals=refusals,
        scarce=None if scarce is None else scratch.view.axis.names[scarce],
        asked=0 if scarce is None else int(want.need[want.rows == scarce].item()),
        largest=0 if scarce is None or scarce >= len(allocatable) else int(allocatable[scarce].max(initial=0)),
        holders=() if scarce is None else _holders(scarce, scratch),
    )


_ABOUT_NODES = {model.Code.UNSCHEDULABLE, model.Code.NEVER_FITS, model.Code.GANG, model.Code.JOB_ORDER}


def _refusals(want: Want, profile: Profile, scratch: Scratch) -> tuple[model.Refusal, ...]:
    """Each filter speaks of the nodes that the filters before it passed."""
    among = np.ones(scratch.free.shape[1], np.bool_)
    found: list[model.Refusal] = []
    for one in profile.filters:
        found += one.refusals(want, scratch, among)
        passed = one.mask(want, scratch, slice(None))
        if passed is not None:
            among &= passed
    return tuple(sorted(found, key=lambda refusal: (-refusal.nodes, refusal.reason)))


def _message(verdict: model.Verdict, refusals: tuple[model.Refusal, ...], scratch: Scratch) -> str:
    nodes = scratch.free.shape[1]
    reasons = ", ".join(f"{refusal.nodes} {refusal.reason}" for refusal in refusals)
    line = f"0/{nodes} nodes are available: {reasons}." if reasons else f"0/{nodes} nodes are available."
    match verdict.code:
        case model.Code.UNSCHEDULABLE:
            return line
        case model.Code.NEVER_FITS | model.Code.GANG if reasons:
            return f"{verdict.message}: {line}"
        case _:
            return verdict.message


def _scarce(want: Want, scratch: Scratch, code: model.Code) -> int | None:
    """The resource that most nodes lack; ties by the cluster's use of it, then by row.

    Of the allowed nodes what is free counts; for what never fits, what each node has when it is empty.
    """
    layout = scratch.view.layout
    rows = want.rows[want.rows < len(layout.totals)]
    had = scratch.free[:, want.eligibility.mask]
    if code is model.Code.NEVER_FITS:
        had = np.zeros_like(scratch.free)
        had[rows] = layout.allocatable[rows]
    if not had.shape[1]:
        return None
    lacking = (had[want.rows] < want.need).sum(axis=1)
    if not lacking.any():
        return None
    use = np.ones(len(scratch.free))
    use[rows] = 1.0 - scratch.free.sum(axis=1)[rows] * layout.inverse_totals[rows]
    return int(min(zip(-lacking, -use[want.rows], want.rows, strict=True))[2])


def _holders(row: int, scratch: Scratch) -> tuple[model.Holder, ...]:
    jobs = scratch.view.by_job.keys() | scratch.jobs.keys()
    usage = {job: scratch.job_usage(job) for job in jobs}
    amounts = {job: held[row] for job, held in usage.items() if row < len(held)}
    held = [model.Holder(job=job, amount=amount) for job, amount in amounts.items() if amount > 0]
    if row < len(scratch.view.layout.totals):
        others = int((scratch.view.layout.totals - scratch.free.sum(axis=1)[: len(scratch.view.layout.totals)])[row])
        others -= sum(amounts.values())
        if others > 0:
            held.append(model.Holder(job=None, amount=others))
    return tuple(sorted(held, key=lambda holder: (-holder.amount, holder.job or ""))[:_HOLDERS])
