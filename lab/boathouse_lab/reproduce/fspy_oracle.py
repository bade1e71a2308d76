"""FSPY's own fair world on one fluid resource with exact sizes, against theory (Friedman and Henderson, 2003).

The resource serves the job of least virtual size, those that finished virtually first, and interrupts it for another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import fspy_setting
from boathouse_lab.reproduce.claim import Claim, Relation
from boathouse_lab.reproduce.sources import sourced
from boathouse_policies import fspy, model
from boathouse_policies.fspy import jobs as fspy_jobs
from boathouse_policies.fspy.virtual import World
from boathouse_sim import fluid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.fspy.virtual import VirtualJob
    from boathouse_sim.fluid import FloatVector
    from boathouse_sim.swim import SwimJob

LOAD = 0.9
SCHEDSIM_S = {fluid.Order.FIFO: 11_135.0, fluid.Order.PS: 75.2, fluid.Order.SRPT: 32.5, fluid.Order.FSP: 32.8}
"""Mean sojourns that schedsim gives for the trace."""
NEAR = 0.01
_WHOLE: fspy_jobs.Amount = (1000.0, float(1 << 30))
_QUEUE = model.QueueName("default")


def mean_sojourn_s(jobs: Sequence[SwimJob], order: fluid.Order) -> float:
    """Return mean time from submission to end, as schedsim has it."""
    arrival_s, size_s = workload(jobs)
    return float((fluid.finish_s(order, arrival_s, size_s) - arrival_s).mean())


def workload(jobs: Sequence[SwimJob]) -> tuple[FloatVector, FloatVector]:
    """Return submissions and sizes, shapes [J]."""
    return np.array([job.submit_s for job in jobs]), fluid.sizes_s(jobs, LOAD)


def finish_s(arrival_s: FloatVector, size_s: FloatVector) -> FloatVector:
    """Return when each job ends if the fair world's order is served, shape [J].

    Args:
        arrival_s: Shape [J], ascending.
        size_s: Work of each job, shape [J], above 0.
    """
    world, ends = World(fspy.Config()), np.zeros(len(arrival_s))
    world.resize(_WHOLE, 0.0)
    left = dict[int, float]()
    arrivals = [*arrival_s.tolist(), math.inf]
    now_s = 0.0
    for place, at_s in enumerate(arrivals):
        while left:
            served = min(left, key=lambda one: _turn(world, one, now_s))
            end_s = now_s + left[served]
            if end_s > at_s:
                left[served] -= at_s - now_s
                break
            del left[served]
            ends[served] = now_s = end_s
            world.end(_id(served), now_s, succeeded=True)
        if at_s < math.inf:
            now_s = at_s
            left[place] = float(size_s[place])
            _come(world, place, at_s, left[place])
    return ends


def _come(world: World, place: int, at_s: float, size_s: float) -> None:
    phase = fspy_jobs.Phase(container=_WHOLE, tasks=1, task_s=size_s)
    job = model.Job(id=_id(place), queue=_QUEUE, submitted_s=at_s)
    world.add(job, fspy_jobs.Shape(phases=(phase,)), at_s)


def _turn(world: World, place: int, now_s: float) -> tuple[float, float, int]:
    job: VirtualJob | None = world.jobs.get(_id(place))
    assert job is not None
    return (-1.0, job.finish_s, place) if job.finished else (job.size_left(now_s), 0.0, place)


def _id(place: int) -> model.JobId:
    return model.JobId(f"{place:06}")


def claims(paper: str) -> list[Claim]:
    """Compare the order with theory on the whole trace."""
    jobs = fspy_setting.trace()
    arrival_s, size_s = workload(jobs)
    fsp_s, ours_s = fluid.finish_s(fluid.Order.FSP, arrival_s, size_s), finish_s(arrival_s, size_s)
    sharing_s = mean_sojourn_s(jobs, fluid.Order.PS)
    later = np.abs(ours_s - fsp_s) / (fsp_s - arrival_s)
    return [
        *(_agrees(paper, jobs, order) for order in SCHEDSIM_S),
        Claim(
            **sourced(paper, "schedsim-fsp-over-ps"),
            claim="FSP's mean sojourn over processor sharing's on one fluid resource with exact sizes",
            figure="oracle: schedsim",
            relation=Relation.EQ,
            paper_value=0.44,
            value=float((fsp_s - arrival_s).mean()) / sharing_s,
            tolerance=0.005,
            baseline=sharing_s,
            baseline_name="processor sharing: mean sojourn [s]",
            unit="%",
        ),
        Claim(
            **sourced(paper, "fair-world-is-fsp"),
            claim="FSPY's fair world on that resource ends each job when FSP does: largest difference over sojourn",
            figure="section I: FSP",
            relation=Relation.LE,
            paper_value=1e-6,
            value=float(later.max()),
        ),
    ]


def _agrees(paper: str, jobs: Sequence[SwimJob], order: fluid.Order) -> Claim:
    theirs_s = SCHEDSIM_S[order]
    return Claim(
        **sourced(paper, f"schedsim-{order.value}"),
        claim=f"{order.value.upper()} on one fluid resource: mean sojourn agrees with schedsim's within 1 %",
        figure="oracle: schedsim",
        relation=Relation.EQ,
        paper_value=theirs_s,
        value=mean_sojourn_s(jobs, order),
        tolerance=NEAR * theirs_s,
        unit="s",
    )
