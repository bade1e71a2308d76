"""One waiting class as a cycle sees it: its size as a vector, the nodes it may use, ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boathouse_policies.framework.extension import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.classes import Sizing, Waiting
    from boathouse_policies.framework.closeness import Closeness
    from boathouse_policies.framework.extension import Sized, Where
    from boathouse_policies.framework.layout import Eligibility
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.pool import Pick, Picker
    from boathouse_policies.framework.scratch import Scratch


class Spot(NamedTuple):
    """A task, its node and its size: what a decision is made of."""

    want: Want
    pick: Pick
    node: int
    resources: model.Resources
    vector: model.IntVector


class Want:
    """A class whose turn may come in this cycle.

    Attributes:
        job: Its job.
        task_class: The class.
        waiting: The class in the waiting room.
        scratch: The copy of the columns that it is judged by.
        place: Its place in the line.
        among: The only nodes that it may fit, ascending, where that is known: they have room for the least size.
    """

    __slots__ = (
        "_closeness",
        "_eligibility",
        "_need",
        "_nowhere",
        "_picker",
        "_profile",
        "_refused",
        "_rows",
        "_scores",
        "_seen",
        "_sizing",
        "among",
        "job",
        "place",
        "scratch",
        "task_class",
        "waiting",
    )

    def __init__(self, waiting: Waiting, profile: Profile, scratch: Scratch) -> None:
        # Most classes of a cycle never get a turn: all that costs is worked out at the first.
        self.waiting = waiting
        self.job = waiting.job
        self.task_class = waiting.task_class
        self.scratch = scratch
        self.place = -1
        self.among: npt.NDArray[np.intp] | None = None
        self._profile = profile
        self._picker: Picker | None = None
        self._closeness: Closeness | None = None
        self._eligibility: Eligibility | None = None
        self._sizing: Sizing | None = None
        self._rows: npt.NDArray[np.intp] | None = None
        self._need: model.IntMatrix | None = None
        self._scores: model.FloatVector | None = None
        self._seen = 0
        self._nowhere = -1
        self._refused: set[int] | None = None

    @property
    def hold(self) -> model.Hold | None:
        """What the last cycle decided that it waits for."""
        return self.waiting.hold

    @property
    def sizing(self) -> Sizing:
        """What the sizer says of it whatever the node."""
        if self._sizing is None:
            self._sizing = self.waiting.sizing(self._profile.sizer, self.scratch.view.axis)
        return self._sizing

    @property
    def ideal(self) -> Sized:
        """The class' own size, one task."""
        return self.sizing.ideal

    @property
    def is_rigid(self) -> bool:
        """Whether its own size is the least."""
        return self.sizing.is_rigid

    @property
    def least(self) -> model.IntVector:
        """The smallest size that may be placed, shape [R]."""
        return self.sizing.least

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """The resources that it asks for."""
        if self._rows is None:
            self._rows = self.least.nonzero()[0]
        return self._rows

    @property
    def need(self) -> model.IntMatrix:
        """The amounts of `rows`, shape [len(rows), 1]."""
        if self._need is None:
            self._need = self.least[self.rows, None]
        return self._need

    @property
    def picker(self) -> Picker:
        """Its tasks."""
        if self._picker is None:
            self._picker = self.waiting.picker(self._profile, self.scratch.view.layout)
        return self._picker

    @property
    def levels(self) -> model.IntVector:
        """How far the nearest input of what is left is from each node, a `model.Distance`, shape [N]."""
        if self._closeness is None:
            self._closeness = self.waiting.closeness(self._profile, self.scratch.view.layout)
            for task in self.picker.taken():
                self._closeness.take(task)
        return self._closeness.levels

    def take(self, pick: Pick) -> None:
        """A task of it is placed: nodes that are further away from what is left count as changed."""
        self.picker.take(pick)
        further = self._closeness.take(pick.task) if self._closeness is not None else ()
        if further and self._scores is not None:
            places = np.array(further, np.intp)
            has_room = np.logical_and.reduce(self.scratch.free[:, places][self.rows] >= self.need)
            self.scratch.touch_all(places[has_room])  # who has no room does not come to have any in this cycle

    def give_back(self, pick: Pick) -> None:
        """The task is not placed after all."""
        self.picker.give_back(pick)
        self._closeness = None  # what it was told of is not so

    @property
    def left(self) -> int:
        """Its tasks that still wait."""
        return self.waiting.pool.count if self._picker is None else self._picker.left

    @property
    def eligibility(self) -> Eligibility:
        """The nodes that its constraints allow."""
        if self._eligibility is None:
            self._eligibility = self.waiting.eligibility(self.scratch.view)
        return self._eligibility

    def feasible(self, where: Where = ALL) -> model.BoolVector:
        """Where a task of the least size may go now."""
        mask = self._passing(self.scratch.offered[where], where)
        if where is ALL and not np.count_nonzero(mask):
            self._nowhere = self.scratch.changes
            return mask
        passed = self._profile.reserve.mask(self, self.scratch, where)
        return mask if passed is None else mask & passed

    def passes(self) -> model.BoolVector:
        """Where all filters pass, whether the node is offered, or kept for somebody, or not."""
        if self._nowhere == self.scratch.changes and self.scratch.view.offered is None and not self.scratch.withdrawn:
            return np.zeros(len(self.scratch.offered), np.bool_)
        return self._passing(np.ones(len(self.scratch.offered), np.bool_), ALL)

    def _passing(self, mask: model.BoolVector, where: Where) -> model.BoolVector:
        for one in self._profile.filters:
            passed = one.mask(self, self.scratch, where)
            if passed is not None:
                mask = mask & passed
                if not np.count_nonzero(mask):  # quicker than any()
                    break
        return mask

    def best(self) -> int | None:
        """The best feasible node; None if there is none."""
        if self.among is None:
            scores = self._mended()
            node = int(scores.argmax()) if len(scores) else -1
            return node if node >= 0 and scores[node] != -np.inf else None
        nodes, scores = self._ranked_among(self.among)
        return int(nodes[scores.argmax()]) if len(nodes) else None

    def ranked(self) -> Iterator[int]:
        """Feasible nodes, best first. A node that the caller does not use is not offered to the class again."""
        places, scores = (None, self._mended()) if self.among is None else self._ranked_among(self.among)
        while len(scores):
            best = int(scores.argmax())
            if scores[best] == -np.inf:
                return
            node = best if places is None else int(places[best])
            yield node
            if self._refused is None:
                self._refused = set()
            self._refused.add(node)
            scores[best] = -np.inf

    def _ranked_among(self, nodes: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], model.FloatVector]:
        """The feasible ones of nodes that have room, and their scores."""
        if not self.eligibility.everywhere:
            nodes = nodes[self.eligibility.mask[nodes]]
        if self._refused:
            nodes = nodes[~np.isin(nodes, list(self._refused))]
        if len(nodes) <= 1:
            return nodes, _UNRANKED[: len(nodes)].copy()
        return nodes, self._profile.score_of(self.task_class.stage).score(self, self.scratch, nodes)

    def _mended(self) -> model.FloatVector:
        """The scores of all nodes, -inf where not feasible, right for the scratch copy as it is now."""
        if self._scores is None:
            self._scores = self._ranks(ALL)
        elif (where := self.scratch.to_mend(self._seen)) is not None:
            self._mend(where)
        self._seen = self.scratch.changes
        return self._scores

    def _mend(self, where: Where) -> None:
        assert self._scores is not None
        self._scores[where] = self._ranks(where)
        if self._refused:
            self._scores[list(self._refused)] = -np.inf

    def _ranks(self, where: Where) -> model.FloatVector:
        feasible = self.feasible(where)
        if not np.count_nonzero(feasible):
            return np.full(len(feasible), -np.inf)
        return np.where(
            feasible, self._profile.score_of(self.task_class.stage).score(self, self.scratch, where), -np.inf
        )


_UNRANKED = np.zeros(1)
