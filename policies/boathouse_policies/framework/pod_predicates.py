"""The predicates of pod affinity, anti-affinity and topology spread, in the words of kube-scheduler."""

from __future__ import annotations

import abc
import collections
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework.questions import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boathouse_policies.framework.affinity.judges import Judge
    from boathouse_policies.framework.cycle_state import CycleState, PendingClass
    from boathouse_policies.framework.layout import Where

NO_KEY = "node(s) didn't match pod topology spread constraints (missing required label)"
UNEVEN = "node(s) didn't match pod topology spread constraints"
NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
FORBIDDEN = "node(s) didn't satisfy existing pods anti-affinity rules"


class _OfPods(Filter, abc.ABC):
    """A predicate over where other pods are: a placement changes its answer for other nodes."""

    until_freed = of_pods = True

    def concerns(self, pending: PendingClass) -> bool:
        """Return whether a class has such constraints, or other pods forbid it next to them."""
        return any(True for _ in self._answers(pending, pending.state))

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """Return where every part of it holds."""
        found: model.BoolVector | None = None
        for _, passed in self._answers(pending, state):
            found = passed if found is None else found & passed
        return None if found is None else found[where]

    def refusals(self, pending: PendingClass, state: CycleState, among: model.BoolVector) -> Sequence[model.Refusal]:
        """Return the first part that refuses each node."""
        refused: collections.Counter[str] = collections.Counter()
        left = among
        for reason, passed in self._answers(pending, state):
            refused[reason] += int((left & ~passed).sum())
            left = left & passed
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in refused.items() if nodes]

    def _answers(self, pending: PendingClass, state: CycleState) -> Iterator[tuple[str, model.BoolVector]]:
        judge = None if state.pod_counts is None else state.pod_counts.judge(pending)
        if judge is not None:
            yield from self._parts(judge)

    @abc.abstractmethod
    def _parts(self, judge: Judge) -> Iterable[tuple[str, model.BoolVector]]:
        """Yield the parts of the filter that concern the class: the reason and the nodes that pass, shape [N]."""


class TopologySpread(_OfPods):
    """Topology spread constraints with DoNotSchedule."""

    def _parts(self, judge: Judge) -> Iterable[tuple[str, model.BoolVector]]:
        for spread in judge.spread:
            yield NO_KEY, spread.counts.domains.exist
            yield UNEVEN, spread.even()


class PodAffinity(_OfPods):
    """Required pod affinity and anti-affinity, of the class and of the pods that are there."""

    def _parts(self, judge: Judge) -> Iterable[tuple[str, model.BoolVector]]:
        if judge.rules.affinity is not None:
            yield NOT_NEAR, judge.near()
        if judge.rules.anti_affinity:
            yield NOT_APART, judge.apart()
        if judge.rules.forbidding:
            yield FORBIDDEN, judge.unforbidden()


ON_PODS = (TopologySpread(), PodAffinity())
