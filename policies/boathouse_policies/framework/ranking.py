"""Where each class may go in a cycle, the best node first.

As the cycle begins, the nodes on offer that have room for anything pending are found, and which shapes each of them has
room for: one comparison for all shapes and all such nodes. So with few nodes, as after a task ended or at a heartbeat,
the cycle sees all classes for these nodes at once; a class that no node has room for costs nothing.

A class is ranked at its first turn: the questions of the profile are asked for the nodes that have room for it. Later
turns ask again for nodes that changed since and still have room. Classes of one shape for which every question gives
the same key share a ranking.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.framework.extension import ALL, ShapeScore

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt

    from boathouse_policies import model
    from boathouse_policies.framework.extension import Filter, Reserve, Where
    from boathouse_policies.framework.lineup import Lineup
    from boathouse_policies.framework.policy import Profile
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.shapes import Shape, ShapeColumns
    from boathouse_policies.framework.want import Want


class Candidates:
    """The nodes on offer with room for anything pending, and how each ranks for each shape.

    Args:
        lineup: The pending classes.
        profile: Its sizer decides the least size of each class.
        scratch: The state of the cycle.

    Attributes:
        nodes: The places of the nodes, ascending, shape [K].
        at: The index of a node in `nodes`; None where they are all nodes, so that a place is its own index.
        compares: Whether every shape was compared with every node; where they are too many, nothing is known before.
    """

    nodes: npt.NDArray[np.intp]
    at: dict[int, int] | None

    def __init__(self, lineup: Lineup, profile: Profile, scratch: Scratch) -> None:
        self._scratch = scratch
        shapes, self._row_of = self._looked_at(lineup, profile)
        self._sizes = shapes.sizes
        self._requests = [(row, shapes.sizes[row]) for row in shapes.requested]
        self._score = profile.score if isinstance(profile.score, ShapeScore) else None
        self._place(self._with_room(shapes.least))
        self.compares = len(shapes) * len(self.nodes) <= _COMPARED_AT_ONCE
        self._seen = scratch.changes
        self._least = [amount or -math.inf for amount in shapes.least.tolist()]
        self._on: list[int] = []
        if self.compares:
            self._compare(shapes)

    def _place(self, nodes: npt.NDArray[np.intp]) -> None:
        self.nodes = nodes
        everything = len(nodes) == len(self._scratch.offered)
        self._span: Where = ALL if everything else nodes
        self.at = None if everything else {node: i for i, node in enumerate(nodes.tolist())}

    def _compare(self, shapes: ShapeColumns) -> None:
        """Compare all shapes with all nodes, and drop nodes that nothing fits on."""
        fits = self._fitting(self._span)
        self._allowed = shapes.allowed(self._scratch.view, self._span)
        if self._allowed is not None:
            fits &= self._allowed
        of_use = fits.any(axis=0)
        if not of_use.all():
            self._place(self.nodes[of_use])
            fits = fits[:, of_use]
            self._allowed = None if self._allowed is None else self._allowed[:, of_use]
        self._scores = self._scored(self._span, fits)
        self._counts: npt.NDArray[np.int64] = np.add.reduce(fits, axis=1, dtype=np.int64)
        self._on = self._counts.tolist()

    def _looked_at(self, lineup: Lineup, profile: Profile) -> tuple[ShapeColumns, npt.NDArray[np.intp]]:
        """The shapes of the classes that the cycle looks at, perhaps with others; and which each class has."""
        shapes, shape_of = lineup.shapes(profile.sizer, self._scratch.view.axis)
        used = np.zeros(len(shapes), np.bool_)
        used[shape_of[lineup.open] if lineup.open.any() else slice(1)] = True  # one at least: rows name it
        count = np.count_nonzero(used)
        if 2 * count >= len(used):
            return shapes, shape_of
        rows = np.zeros(len(used), np.intp)
        rows[used] = np.arange(count)
        return shapes.among(used), rows[shape_of]

    def _with_room(self, least: model.IntVector) -> npt.NDArray[np.intp]:
        """The nodes on offer that have as much of each resource as the shape that asks for least of it."""
        scratch = self._scratch
        free, offered = scratch.free, scratch.offered
        if scratch.view.offered is not None:
            places = offered.nonzero()[0]
            return places[np.logical_and.reduce(np.maximum(free[:, places], 0) >= least[:, None])]
        enough = offered
        for row, amount in enumerate(least.tolist()):
            if amount:
                enough = enough & (free[row] >= amount)
        return enough.nonzero()[0]

    def _fitting(self, where: Where) -> npt.NDArray[np.bool_]:
        """Which shapes some nodes have room for, shape [S, len(where)].

        A request of 0 fits also where a resource is over-committed.
        """
        room = np.maximum(self._scratch.free[:, where], 0)
        if not self._requests:
            return np.ones((self._sizes.shape[1], room.shape[1]), np.bool_)
        fits: npt.NDArray[np.bool_] = np.logical_and.reduce(
            [size[:, None] <= room[row] for row, size in self._requests]
        )
        return fits

    def _scored(self, where: Where, fits: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """The scores of some nodes for all shapes, -inf where they do not fit, shape [S, len(where)]."""
        if self._score is None:
            return np.where(fits, 0.0, _NEVER)
        inverse = self._scratch.view.layout.inverse_allocatable[:, where]
        return np.where(fits, self._score.of_shapes(self._sizes, self._scratch.free[:, where], inverse), _NEVER)

    def renew(self) -> None:
        """Compare the nodes that changed since the last call with all shapes."""
        scratch = self._scratch
        if self._seen == scratch.changes or not self.compares:
            return
        for i in indices(self.at, scratch.changed_since(self._seen).tolist()):
            node = int(self.nodes[i])
            before = self._scores[:, i] != _NEVER
            if scratch.offered[node] and all(map(operator.le, self._least, scratch.free[:, node].tolist())):
                here = slice(node, node + 1)
                fits = self._fitting(here)
                if self._allowed is not None:
                    fits &= self._allowed[:, i : i + 1]
                self._scores[:, i] = self._scored(here, fits)[:, 0]
                self._counts += fits[:, 0]
            else:
                self._scores[:, i] = _NEVER
            self._counts -= before
        self._on = self._counts.tolist()
        self._seen = scratch.changes

    @property
    def anything_fits(self) -> bool:
        """Whether anything pending may fit on any of the nodes."""
        return not self.compares or any(self._on)

    def has_room(self, place: int) -> bool:
        """Whether a class, by its place in the lineup, may fit on any of the nodes."""
        return not self.compares or self._on[self._row_of[place]] > 0

    def without_room(self) -> model.BoolVector | None:
        """The classes that fit on none of the nodes, shape [C], and perhaps others; None where that is not known."""
        return (self._counts == 0)[self._row_of] if self.compares else None

    def scores(self, want: Want) -> model.FloatVector:
        """The scores of the nodes for a class' shape, -inf where it does not fit, shape [K]: kept up by `renew`."""
        self.renew()
        found: model.FloatVector = self._scores[self._row_of[want.place]]
        return found

    def row(self, want: Want) -> model.BoolVector:
        """The nodes that a class' shape fits on, shape [K]."""
        return self.scores(want) != _NEVER if self.compares else self.fits(want.shape, self._span)

    def fits(self, shape: Shape, where: Where) -> model.BoolVector:
        """Which of some nodes are on offer, allowed by the shape's constraints and have room for it now."""
        scratch = self._scratch
        found: model.BoolVector = np.logical_and.reduce(scratch.free[:, where][shape.rows] >= shape.need)
        found &= scratch.offered[where]
        eligibility = shape.eligibility(scratch.view)
        return found if eligibility.everywhere else found & eligibility.mask[where]

    def still_fits(self, shape: Shape, node: int) -> bool:
        """The same of one node."""
        scratch = self._scratch
        if not scratch.offered[node]:
            return False
        room: list[int] = scratch.free[:, node].tolist()
        for row, amount in shape.asks:
            if room[row] < amount:
                return False
        eligibility = shape.eligibility(scratch.view)
        return eligibility.everywhere or bool(eligibility.mask[node])


def indices(at: Mapping[int, int] | None, nodes: Sequence[int]) -> Sequence[int]:
    """The indices of those nodes that are candidates, each once."""
    if len(nodes) == 1:
        return nodes if at is None else [at[nodes[0]]] if nodes[0] in at else ()
    if at is None:
        return list(dict.fromkeys(nodes))
    return list(dict.fromkeys([at[node] for node in nodes if node in at]))


class Ranking:
    """The scores of the candidate nodes for some classes.

    Attributes:
        scores: -inf where none of them may go, shape [K].
        questions: Who is asked beside the candidates.
        seen: The changes of the cycle that they take into account.
        refused: Indices of nodes that the sizer refused.
    """

    __slots__ = ("questions", "refused", "scores", "seen")

    def __init__(self, scores: model.FloatVector, questions: Sequence[Filter | Reserve] | None, seen: int) -> None:
        self.scores = scores
        self.questions = questions
        self.seen = seen
        self.refused: set[int] = set()


class Rankings:
    """The ranking of each class that had a turn.

    Args:
        candidates: The nodes.
        profile: Asked for filters, reservations and scores.
        scratch: The state of the cycle.
    """

    def __init__(self, candidates: Candidates, profile: Profile, scratch: Scratch) -> None:
        self._candidates = candidates
        self._profile = profile
        self._scratch = scratch
        self._known: dict[Hashable, Ranking] = {}

    def best(self, want: Want) -> int | None:
        """The best node that a class may use now; of equal ones, the first. None if there is none."""
        scores = self._of(want).scores
        if not len(scores):
            return None
        i = int(scores.argmax())
        if scores[i] == _NEVER:
            return None
        return i if self._candidates.at is None else int(self._candidates.nodes[i])

    def refuse(self, want: Want, node: int) -> None:
        """The class does not take this node in this cycle."""
        ranking = self._of(want)
        i = self._candidates.at[node] if self._candidates.at is not None else node
        ranking.refused.add(i)
        ranking.scores[i] = _NEVER

    def may_use(self, want: Want, node: int) -> bool:
        """Whether a class may have one more task on a node."""
        if not self._candidates.still_fits(want.shape, node):
            return False
        passing = self._passing(want, slice(node, node + 1), self._profile.questions_for(want))
        return passing is None or bool(passing[0])

    def _of(self, want: Want) -> Ranking:
        ranking = want.ranking
        if ranking is None:
            ranking = want.ranking = self._shared(want)
        if ranking.questions is None:
            self._candidates.renew()
        elif ranking.seen != self._scratch.changes or want.moved:
            self._mend(want, ranking, ranking.questions)
        return ranking

    def _shared(self, want: Want) -> Ranking:
        """The ranking that classes with the same answers have in common."""
        profile, candidates = self._profile, self._candidates
        questions, score = profile.questions_for(want), profile.score_of(want.task_class.stage)
        sizes = profile.sizer.key(want)
        if candidates.compares and not questions and sizes is None and score is profile.score and score.of_shape:
            return Ranking(candidates.scores(want), None, 0)
        key = (want.shape, sizes, score, score.key(want), *((one, one.key(want)) for one in questions))
        ranking = self._known.get(key)
        if ranking is None:
            ranking = self._known[key] = self._ranked(want, questions)
        return ranking

    def _ranked(self, want: Want, questions: Sequence[Filter | Reserve]) -> Ranking:
        candidates = self._candidates
        fits = candidates.row(want)
        where: Where = ALL
        if candidates.at is not None or not fits.all():
            where = candidates.nodes[fits]
        scores = np.full(len(fits), _NEVER)
        if len(scores):
            scores[fits] = self._scores(want, where, questions)
        want.moved.clear()
        return Ranking(scores, questions, self._scratch.changes)

    def _mend(self, want: Want, ranking: Ranking, questions: Sequence[Filter | Reserve]) -> None:
        scratch, candidates, scores = self._scratch, self._candidates, ranking.scores
        changed = scratch.changed_since(ranking.seen).tolist()
        ranking.seen = scratch.changes
        if want.moved:
            changed += want.moved
            want.moved.clear()
        found = indices(candidates.at, changed)
        if ranking.refused:
            found = [i for i in found if i not in ranking.refused]
        if len(found) > _ONE_BY_ONE:
            many = np.array(found, np.intp)
            scores[many] = _NEVER
            many = many[candidates.fits(want.shape, candidates.nodes[many])]
        else:
            for i in found:
                scores[i] = _NEVER
            left = [i for i in found if candidates.still_fits(want.shape, int(candidates.nodes[i]))]
            if len(left) == 1:
                node = int(candidates.nodes[left[0]])
                scores[left[0]] = self._scores(want, slice(node, node + 1), questions)[0]
                return
            many = np.array(left, np.intp)
        if len(many):
            scores[many] = self._scores(want, candidates.nodes[many], questions)

    def _scores(self, want: Want, where: Where, questions: Sequence[Filter | Reserve]) -> model.FloatVector:
        """The scores of nodes that have room, -inf where a filter or a reservation is in the way."""
        count = len(self._candidates.nodes) if where is ALL else _length(where)
        passing = self._passing(want, where, questions)
        if passing is not None and not np.count_nonzero(passing):
            return np.full(count, _NEVER)
        if len(self._candidates.nodes) == 1:
            return np.zeros(1)  # nothing to choose from
        score = self._profile.score_of(want.task_class.stage).score(want, self._scratch, where)
        return score if passing is None else np.where(passing, score, _NEVER)

    def _passing(self, want: Want, where: Where, questions: Sequence[Filter | Reserve]) -> model.BoolVector | None:
        """Where all filters and the reserve pass; None for everywhere."""
        passing: model.BoolVector | None = None
        for one in questions:
            passed = one.mask(want, self._scratch, where)
            if passed is not None:
                passing = passed if passing is None else passing & passed
                if not np.count_nonzero(passing):  # quicker than any()
                    break
        return passing


def _length(where: Where) -> int:
    return where.stop - where.start if isinstance(where, slice) else len(where)


_NEVER = -np.inf
_ONE_BY_ONE = 8  # measured: from about so many nodes on, one column operation is cheaper than plain numbers
_COMPARED_AT_ONCE = 1 << 19  # shapes times nodes: a few milliseconds, and 4 MiB
