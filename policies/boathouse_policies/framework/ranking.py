"""Where each class may go in a cycle, the best node first.

A class is ranked at its first turn: the questions of the profile are asked for the nodes that have room for it. Later
turns ask again for nodes that changed since and still have room. Classes of one shape for which every question gives
the same key share a ranking.
"""

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.candidates import NEVER, Candidates, FewNodes, all_fits, indices, still_fits
from boathouse_policies.framework.cycle_state import CycleState, PendingClass
from boathouse_policies.framework.layout import ALL, Where
from boathouse_policies.framework.questions import Filter, Reserve
from boathouse_policies.framework.scheduling_profile import Profile


@dataclasses.dataclass(slots=True, eq=False)
class Ranking:
    """The scores of the candidate nodes for some classes."""

    scores: list[float] | model.FloatVector  # -inf where none of them may go, length K: a list of few, a column of many
    questions: Sequence[Filter | Reserve]
    seen: int
    refused: set[int] = dataclasses.field(default_factory=set)  # indices of nodes that the sizer refused

    def best(self) -> int | None:
        """Return the index of the best node, the first of equal ones; None if there is none."""
        scores = self.scores
        if not len(scores):
            return None
        i = scores.index(max(scores)) if isinstance(scores, list) else int(scores.argmax())
        return None if scores[i] == NEVER else i

    def best_among(self, passing: model.BoolVector) -> int | None:
        """Return the index of the best node among some, shape [K]."""
        scores = np.where(passing, self.scores, NEVER)
        i = int(scores.argmax()) if len(scores) else -1
        return None if i < 0 or scores[i] == NEVER else i


class Rankings:
    """The ranking of each class that had a turn."""

    def __init__(self, candidates: Candidates, profile: Profile, state: CycleState) -> None:
        self._candidates, self._profile, self._state = candidates, profile, state
        self._known: dict[Hashable, Ranking] = {}
        self._of_class: dict[int, Ranking] = {}

    def best(self, pending: PendingClass) -> int | None:
        """Return the best node that a class may use now, the first of equal ones; None if there is none."""
        ranking, passing = self._of(pending), self._state.beside_pods(pending)
        i = ranking.best() if passing is None else ranking.best_among(passing[self._candidates.where])
        return i if i is None or self._candidates.at is None else self._candidates.listed[i]

    def refuse(self, pending: PendingClass, node: int) -> None:
        """Refuse a node for the class in this cycle."""
        ranking, i = self._of(pending), node if self._candidates.at is None else self._candidates.at[node]
        ranking.refused.add(i)
        ranking.scores[i] = NEVER

    def may_use(self, pending: PendingClass, node: int) -> bool:
        """Return whether a class may have one more task on a node."""
        if not still_fits(pending.shape, node, self._state):
            return False
        if (passing := self._state.beside_pods(pending)) is not None and not passing[node]:
            return False
        return all(question.passes(pending, self._state, node) for question in self._profile.asked_about(pending))

    def _of(self, pending: PendingClass) -> Ranking:
        if (ranking := self._of_class.get(pending.place)) is None:
            ranking = self._of_class[pending.place] = self._shared(pending)
        if ranking.seen != self._state.changes or pending.moved:
            self._update(pending, ranking)
        return ranking

    def _shared(self, pending: PendingClass) -> Ranking:
        profile = self._profile
        questions, score = profile.asked_about(pending), profile.score_of(pending.task_class.stage)
        if len(self._candidates.listed) <= _NOT_SHARED:
            return self._ranked(pending, questions)
        answers = [(question, question.key(pending)) for question in questions]
        key = (pending.shape, profile.sizer.key(pending), score, score.key(pending), *answers)
        return self._known.get(key) or self._known.setdefault(key, self._ranked(pending, questions))

    def _ranked(self, pending: PendingClass, questions: Sequence[Filter | Reserve]) -> Ranking:
        candidates, seen = self._candidates, self._state.changes
        pending.moved.clear()
        if isinstance(candidates, FewNodes):
            ranking = Ranking([NEVER] * len(candidates.listed), questions, seen)
            self._rank(pending, ranking, range(len(candidates.listed)))
            return ranking
        fits = candidates.row(pending)
        where: Where = ALL if candidates.at is None and fits.all() else candidates.nodes[fits]
        scores = np.full(len(fits), NEVER)
        if len(scores):
            scores[fits] = self._scores(pending, where, questions)
        return Ranking(scores, questions, seen)

    def _update(self, pending: PendingClass, ranking: Ranking) -> None:
        state, candidates = self._state, self._candidates
        changed, ranking.seen = state.changed_since(ranking.seen), state.changes
        if pending.moved:
            changed += pending.moved
            pending.moved.clear()
        found = indices(candidates.at, changed)
        if ranking.refused:
            found = [i for i in found if i not in ranking.refused]
        if len(found) > _ONE_BY_ONE and not isinstance(candidates, FewNodes) and not isinstance(ranking.scores, list):
            at = np.array(found, np.intp)
            nodes = candidates.nodes[at]
            ranking.scores[at] = NEVER
            fits = all_fits(pending.shape, nodes, state)
            if np.count_nonzero(fits):
                ranking.scores[at[fits]] = self._scores(pending, nodes[fits], ranking.questions)
        else:
            self._rank(pending, ranking, found)

    def _rank(self, pending: PendingClass, ranking: Ranking, found: Sequence[int]) -> None:
        scores, listed, questions = ranking.scores, self._candidates.listed, ranking.questions
        left = []
        for i in found:
            scores[i] = NEVER
            if still_fits(pending.shape, listed[i], self._state):
                left.append(i)
        if len(left) == 1 or (len(left) <= _ONE_BY_ONE and all(question.by_node for question in questions)):
            for i in left:
                scores[i] = self._score_on(pending, listed[i], questions)
        elif left:
            nodes = np.array([listed[i] for i in left], np.intp)
            for i, score in zip(left, self._scores(pending, nodes, questions).tolist(), strict=True):
                scores[i] = score

    def _score_on(self, pending: PendingClass, node: int, questions: Sequence[Filter | Reserve]) -> float:
        for question in questions:
            if not question.passes(pending, self._state, node):
                return NEVER
        if len(self._candidates.listed) == 1:
            return 0.0  # nothing to choose from
        return self._profile.score_of(pending.task_class.stage).score_on(pending, self._state, node)

    def _scores(self, pending: PendingClass, where: Where, questions: Sequence[Filter | Reserve]) -> model.FloatVector:
        """Return the scores of nodes with room, -inf where a filter or a reservation is in the way."""
        if (passing := self._passing(pending, where, questions)) is not None and not np.count_nonzero(passing):
            return np.full(len(passing), NEVER)
        score = self._profile.score_of(pending.task_class.stage).score(pending, self._state, where)
        return score if passing is None else np.where(passing, score, NEVER)

    def _passing(
        self, pending: PendingClass, where: Where, questions: Sequence[Filter | Reserve]
    ) -> model.BoolVector | None:
        """Return where all filters and the reserve pass; None for everywhere."""
        passing: model.BoolVector | None = None
        for question in questions:
            if (passed := question.mask(pending, self._state, where)) is not None:
                passing = passed if passing is None else passing & passed
                if not np.count_nonzero(passing):  # quicker than any()
                    break
        return passing


_NOT_SHARED = 4  # to rank so few nodes costs less than to find out who shares a ranking
_ONE_BY_ONE = 8  # measured: from about so many nodes on, one column operation is cheaper than plain numbers
