"""Which nodes a class may use, given the pods that are there and those that the cycle has placed."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.affinity import Rules, Spread, Sum, Tally
from boathouse_policies.framework.layout import Domains, Layout
from boathouse_policies.framework.queue import QueuedClass
from boathouse_policies.framework.view import ClusterView

NO_KEY = "node(s) didn't match pod topology spread constraints (missing required label)"
UNEVEN = "node(s) didn't match pod topology spread constraints"
NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
FORBIDDEN = "node(s) didn't satisfy existing pods anti-affinity rules"


class Placed(NamedTuple):
    """A pod that the cycle placed, or took back: where, which tallies it changes, and by how much."""

    node: int
    changes: frozenset[Tally]
    step: int


class _Counts:
    """The count of each domain of a topology key, of some nodes or all, placements of the cycle included."""

    __slots__ = ("_among", "_tallies", "domains", "sums")

    def __init__(self, domains: Domains, counted: Sum, layout: Layout, among: model.BoolVector | None = None) -> None:
        self.domains, self._tallies, self._among = domains, counted.tallies, among
        column = counted.total.column(layout)
        # The counts, and 0 for the nodes without the key, shape [D + 1].
        self.sums = domains.sums(column if among is None else column * among)

    def take(self, placed: Placed) -> bool:
        """Take in what the cycle placed; return whether it counts."""
        count, domain = len(placed.changes & self._tallies), self.domains.places[placed.node]
        if not count or domain == len(self.domains) or (self._among is not None and not self._among[placed.node]):
            return False
        self.sums[domain] += placed.step * count
        return True

    def absent(self) -> model.BoolVector:
        """Return the nodes in whose domain none is counted, and those without the key, shape [N]."""
        return (self.sums < 1)[self.domains.of]

    def present(self) -> model.BoolVector:
        """Return the nodes in whose domain any is counted, shape [N]."""
        return (self.sums > 0)[self.domains.of]


class SpreadCounts:
    """The counts of a spread constraint."""

    def __init__(self, spread: Spread, layout: Layout, among: model.BoolVector) -> None:
        domains = layout.domains(spread.constraint.topology_key)
        self.counts = _Counts(domains, spread.sum, layout, None if among.all() else among)
        self._exist = domains.sums(among.astype(np.int64)) > 0
        self._few = int(self._exist.sum()) < spread.constraint.min_domains
        self._room = spread.constraint.max_skew - spread.own

    def even(self) -> model.BoolVector:
        """Return the nodes in whose domain one more pod is not too many, shape [N]; any value without the key."""
        least = 0 if self._few else int(self.counts.sums[self._exist].min())
        return (self.counts.sums <= self._room + least)[self.counts.domains.of]


class Judge:
    """Which nodes a class may use now. It decides nothing where pods forbid others by labels that no node has."""

    def __init__(self, rules: Rules, constraints: model.Constraints, view: ClusterView) -> None:
        layout, self.rules, self._seen = view.layout, rules, 0
        self._mask: model.BoolVector | None = None
        keys = dict.fromkeys(term.topology_key for term in constraints.pod_affinity)
        self._affinity, self._anti_affinity, self._forbidding = (
            [_Counts(layout.domains(key), of, layout) for key, of in sums]
            for sums in (
                [(key, rules.affinity) for key in keys if rules.affinity is not None],
                rules.anti_affinity.items(),
                [(key, of) for key, of in rules.forbidding.items() if key in layout.label_keys],
            )
        )
        labelled = _all([layout.domains(spread.constraint.topology_key).exist for spread in rules.spread])
        self._spread = [
            SpreadCounts(spread, layout, labelled & view.counted(constraints, spread.constraint))
            for spread in rules.spread
        ]
        self._counts = [*self._affinity, *self._anti_affinity, *self._forbidding]
        self._counts += [spread.counts for spread in self._spread]
        self.decides = bool(self._counts)

    def take(self, log: Sequence[Placed]) -> None:
        """Take in what the cycle placed since the last call."""
        for placed in log[self._seen :]:
            for counts in self._counts:
                if counts.take(placed):
                    self._mask = None
        self._seen = len(log)

    def mask(self) -> model.BoolVector:
        """Return where the class may go, shape [N]: read-only."""
        if self._mask is None:
            self._mask = _all([passing for _, passing in self.answers()])
        return self._mask

    def answers(self) -> Iterator[tuple[str, model.BoolVector]]:
        """Yield for each constraint why it refuses nodes, and the nodes that pass, shape [N]."""
        for spread in self._spread:
            yield NO_KEY, spread.counts.domains.exist
            yield UNEVEN, spread.even()
        if self._affinity:
            yield NOT_NEAR, self.near()
        if self._anti_affinity:
            yield NOT_APART, self.apart()
        if self._forbidding:
            yield FORBIDDEN, self.unforbidden()

    def near(self) -> model.BoolVector:
        """Return the nodes where the terms of affinity hold, shape [N]."""
        if self.rules.is_first and not any(counts.sums.any() for counts in self._affinity):
            return _all([counts.domains.exist for counts in self._affinity])
        return _all([counts.present() for counts in self._affinity])

    def apart(self) -> model.BoolVector:
        """Return the nodes where the terms of anti-affinity hold, shape [N]."""
        return _all([counts.absent() for counts in self._anti_affinity])

    def unforbidden(self) -> model.BoolVector:
        """Return the nodes where no pod forbids pods of the class, shape [N]."""
        return _all([counts.absent() for counts in self._forbidding])


def _all(masks: Sequence[model.BoolVector]) -> model.BoolVector:
    if len(masks) == 1:
        return masks[0]
    found: model.BoolVector = np.logical_and.reduce(masks) if masks else _EVERYWHERE
    return found


class CycleCounts:
    """The pods that a cycle has placed, and the judges of its classes."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._log: list[Placed] = []
        self._judges: dict[model.ClassId, Judge | None] = {}

    def judge(self, queued: QueuedClass) -> Judge | None:
        """Return the judge of a class; None if the class does not depend on other pods."""
        task_class = queued.task_class
        if task_class.id not in self._judges:
            rules = queued.rules(self._view.tallies)
            judge = Judge(rules, task_class.constraints, self._view) if rules.decide else None
            self._judges[task_class.id] = judge if judge is not None and judge.decides else None
        if (judge := self._judges[task_class.id]) is not None:
            judge.take(self._log)
        return judge

    def place(self, queued: QueuedClass, node: int, step: int) -> None:
        """Count a pod that the cycle places; with the step -1, count it no more."""
        if changes := queued.rules(self._view.tallies).changes:
            self._log.append(Placed(node, changes, step))

    def wait(self, queued: QueuedClass) -> None:
        """Note that a class waits for other counts of what decides about it."""
        for tally in queued.rules(self._view.tallies).watched():
            self._view.tallies.wait(tally, queued.task_class.id)


_EVERYWHERE: model.BoolVector = np.ones(1, np.bool_)  # is broadcast
_EVERYWHERE.flags.writeable = False
