"""The line of a plain cycle, prepared once and used as long as the same classes wait (`express`)."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.yarn_me.penalty import Elastic

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework import ClusterView, Layout, Waiting, WaitingRoom
    from boathouse_policies.framework.extension import Lasting, Sizer
    from boathouse_policies.framework.layout import Eligibilities
    from boathouse_policies.framework.lineup import Lineup


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class One:
    """A waiting class.

    Attributes:
        waiting: As the room has it.
        id: Its id.
        code: Its number among all that wait.
        rows: The resources that it asks for.
        need: The least amounts of those, shape [len(rows), 1].
        asks: The same as plain numbers: (row, amount).
        elastic: What is known of it with less memory; None where nothing is.
        regular_s: Run time with the ideal memory; infinite where nothing is known.
        never_fits: Whether no node is large enough for the least size, even empty.
    """

    waiting: Waiting
    id: model.ClassId
    code: int
    rows: npt.NDArray[np.intp]
    need: model.IntMatrix
    asks: tuple[tuple[int, int], ...]
    elastic: Elastic | None
    regular_s: float
    never_fits: bool


def _one(waiting: Waiting, layout: Layout, sizer: Sizer, axis: model.Axis) -> One:
    least = axis.vector(sizer.least(waiting.task_class))
    rows, known = least.nonzero()[0], waiting.task_class.estimates
    elastic = known if isinstance(known, Elastic) else None
    return One(
        waiting=waiting,
        id=waiting.task_class.id,
        code=waiting.row,
        rows=rows,
        need=least[rows, None],
        asks=tuple(zip(rows.tolist(), least[rows].tolist(), strict=True)),
        elastic=elastic,
        regular_s=math.inf if elastic is None else elastic.seconds(elastic.ideal_bytes),
        never_fits=not layout.could_hold(least),
    )


class Cast:
    """Who is in line.

    Args:
        lineup: The room's.
        layout: The nodes.
        sizer: Says the least size.
        axis: Rows of sizes.
        before: The cast before this one: most are in it.

    Attributes:
        jobs: The classes of each job, in order of submission.
        by_id: The classes, in the order of the line.
        job_of: The place of each class' job in the order of submission.
        open: Which of the lineup's classes they are.
    """

    def __init__(
        self, lineup: Lineup, layout: Layout, sizer: Sizer, axis: model.Axis, before: Cast | None = None
    ) -> None:
        self.lineup = lineup
        self.layout = layout
        self.open = lineup.open
        known = before.by_id if before is not None and before.layout is layout else {}
        looked_at = lineup.open.nonzero()[0].tolist()
        places = {job: i for i, job in enumerate(dict.fromkeys(lineup.job_of[place] for place in looked_at))}
        self._places = np.array([lineup.first[job] for job in places], np.intp)
        self.by_id: dict[model.ClassId, One] = {}
        self.job_of: dict[model.ClassId, int] = {}
        self._turn: dict[model.ClassId, int] = {}
        self.jobs: list[list[One]] = [[] for _ in places]
        for place in looked_at:
            waiting = lineup.waiting[place]
            one = known.get(waiting.task_class.id)
            if one is None or one.waiting is not waiting:
                one = _one(waiting, layout, sizer, axis)
            job = self.job_of[one.id] = places[lineup.job_of[place]]
            self.by_id[one.id], self._turn[one.id] = one, place
            self.jobs[job].append(one)

    def held(self, order: Lasting, view: ClusterView) -> model.FloatVector:
        """Bytes that each job holds, by its place."""
        held: model.FloatVector = self.lineup.keys(order, view)[self._places]
        return held

    def last_first(self, classes: Iterable[model.ClassId]) -> list[One]:
        """Those of some classes that are in the line, the last of them first."""
        turns = sorted([(self._turn[one], one) for one in classes if one in self._turn], reverse=True)
        return [self.by_id[one] for _, one in turns]

    def fits(self, lineup: Lineup, layout: Layout) -> bool:
        """Whether it is good for a cycle with these: the same classes are looked at, on the same nodes."""
        same = self.lineup is lineup and self.layout is layout
        return same and (self.open is lineup.open or bool((self.open == lineup.open).all()))


def is_plain(lineup: Lineup, room: WaitingRoom, layout: Layout, eligibilities: Eligibilities, axis: model.Axis) -> bool:
    """Whether nothing but memory, CPU and the order decides: one queue without limits, one priority, no constraints."""
    if len(lineup.bands) > 1 or lineup.orphans or lineup.gangs or len(axis) != len(layout.allocatable):
        return False
    if lineup.bands and room.queues[lineup.bands[0].queue].limits:
        return False
    return all(_is_plain(waiting, layout, eligibilities) for waiting in lineup.waiting)


def _is_plain(waiting: Waiting, layout: Layout, eligibilities: Eligibilities) -> bool:
    constraints, pool = waiting.task_class.constraints, waiting.pool
    expected = bool(pool.order) and pool.order[-1].expected  # they come last
    alone = not constraints.host_ports and not pool.located and not expected
    return alone and eligibilities.of(constraints, layout).everywhere
