"""One waiting class as a cycle sees it: its size as a vector, the nodes it may use, its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.classes import Waiting
    from boathouse_policies.framework.closeness import Closeness
    from boathouse_policies.framework.extension import Sized
    from boathouse_policies.framework.layout import Eligibility
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.pool import Pick, Picker
    from boathouse_policies.framework.ranking import Ranking
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.shapes import Shape


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
        shape: Its least size and its constraints.
        least: The smallest size that may be placed, shape [R].
        ideal: The class' own size, one task.
        is_rigid: Whether its own size is the least.
        ranking: Its ranking, once it had a turn.
        of_shape: Whether its shape alone decides where it goes; None before its first turn.
        moved: Nodes that are further from the input of what is left than they were when they were ranked.
    """

    __slots__ = (
        "_closeness",
        "_picker",
        "_profile",
        "ideal",
        "is_rigid",
        "job",
        "least",
        "moved",
        "of_shape",
        "place",
        "ranking",
        "scratch",
        "shape",
        "task_class",
        "waiting",
    )

    def __init__(self, waiting: Waiting, profile: Profile, scratch: Scratch) -> None:
        self.waiting = waiting
        self.job = waiting.job
        self.task_class = waiting.task_class
        self.scratch = scratch
        self.place = -1
        self.ranking: Ranking | None = None
        self.of_shape: bool | None = None
        self.moved: list[int] = []
        self._profile = profile
        self._picker: Picker | None = None
        self._closeness: Closeness | None = None
        sizing = waiting.sizing(profile.sizer, scratch.view.axis)
        self.shape: Shape = sizing.shape
        self.least: model.IntVector = sizing.shape.least
        self.ideal: Sized = sizing.ideal
        self.is_rigid: bool = sizing.is_rigid

    @property
    def hold(self) -> model.Hold | None:
        """What the last cycle decided that it waits for."""
        return self.waiting.hold

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """The resources that it requests."""
        return self.shape.rows

    @property
    def need(self) -> model.IntMatrix:
        """The amounts of `rows`, shape [len(rows), 1]."""
        return self.shape.need

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
        """A task of it is placed: nodes may be further away from what is left."""
        self.picker.take(pick)
        if self._closeness is not None:
            self.moved += self._closeness.take(pick.task)

    def give_back(self, pick: Pick) -> None:
        """The task is not placed after all."""
        self.picker.give_back(pick)
        self._closeness = None  # what it was told of is not so
        self.ranking = None

    @property
    def left(self) -> int:
        """Its tasks that still wait."""
        return self.waiting.pool.count if self._picker is None else self._picker.left

    @property
    def eligibility(self) -> Eligibility:
        """The nodes that its constraints allow."""
        return self.shape.eligibility(self.scratch.view)

    def passing(self) -> npt.NDArray[np.intp]:
        """The places of the nodes where all filters pass, whether the node is offered, or kept for somebody, or not."""
        room = self.scratch.room(self)
        nodes = (room if self.eligibility.everywhere else room & self.eligibility.mask).nonzero()[0]
        for one in self._profile.filters:
            if one.of_shape or not len(nodes):
                continue
            passed = one.mask(self, self.scratch, nodes)
            if passed is not None:
                nodes = nodes[passed]
        return nodes
