"""Cycles that rank plainly: all nodes at each turn, for each class alone, and every class gets a turn."""

from __future__ import annotations

import collections
import contextlib
from typing import TYPE_CHECKING

import pytest

from boathouse_policies.framework import candidates, ranking, turn_order
from boathouse_policies.framework.layout import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boathouse_policies.framework import PendingClass


class PlainRankings(ranking.Rankings):
    """Rankings that keep nothing but refusals, and apply every filter to every node."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self._refused: dict[int, list[int]] = collections.defaultdict(list)

    def best(self, pending: PendingClass) -> int | None:
        passes = self._state.offered.copy()
        for question in (*self._profile.filters, self._profile.reserve):
            passed = question.mask(pending, self._state, ALL)
            if passed is not None:
                passes &= passed
        passes[self._refused[pending.place]] = False
        nodes = passes.nonzero()[0]
        scores = self._profile.score_of(pending.task_class.stage).score(pending, self._state, nodes)
        return int(nodes[scores.argmax()]) if len(nodes) else None

    def refuse(self, pending: PendingClass, node: int) -> None:
        self._refused[pending.place].append(node)


@contextlib.contextmanager
def plain_rankings() -> Iterator[None]:
    """Cycles in this context rank plainly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turn_order, "Rankings", PlainRankings)
        patch.setattr(candidates, "_FEW", -1)
        patch.setattr(candidates, "_COMPARED_AT_ONCE", -1)
        yield
