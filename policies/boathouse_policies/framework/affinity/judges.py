"""Which nodes a class may use, given the pods that are there and those that the cycle has placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from boathouse_policies.framework.affinity import tallies
from boathouse_policies.model.values import value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from boathouse_policies import model
    from boathouse_policies.framework.affinity.tallies import Resident, Tallies, Tally
    from boathouse_policies.framework.layout import Domains, Layout


class View(Protocol):
    """What a judge reads of a snapshot of the cluster."""

    layout: Layout
    tallies: Tallies

    def counted(self, constraints: model.Constraints, spread: model.Spread) -> model.BoolVector:
        """Return the nodes that a spread constraint of a pod counts, shape [N]."""
        ...


class Queued(Protocol):
    """A class in the scheduling queue."""

    def rules(self, tallies: Tallies) -> Rules:
        """Return what decides where it may go beside other pods."""
        ...


class Pending(Protocol):
    """A class whose turn may come in a cycle."""

    @property
    def task_class(self) -> model.TaskClass:
        """The class."""
        ...

    @property
    def queued(self) -> Queued:
        """The class in the scheduling queue."""
        ...


class Sum(NamedTuple):
    """Several tallies, and their total."""

    tallies: frozenset[Tally]
    total: Tally

    @classmethod
    def of(cls, members: Collection[Tally], all_: Tallies) -> Sum:
        """Return the sum of some tallies."""
        found = frozenset(members)
        return cls(found, all_.total(found))


class _Spread(NamedTuple):
    """A spread constraint, with what it counts, and whether it counts the class' own pods."""

    constraint: model.Spread
    sum: Sum
    own: int


@value(frozen=True, slots=True, kw_only=True)
class Rules:
    """The tallies that decide about a class, and those that its pods change: a memo, as long as the version is equal.

    Attributes:
        version: That of the namespace's tallies.
        changes: The tallies that a pod of the class changes.
        affinity: What the terms of affinity count; None without such terms.
        is_first: Whether its own pods satisfy them, so that the first pod may start anywhere.
        anti_affinity: What each term of anti-affinity counts, by topology key.
        forbidding: The pods that forbid pods of the class next to them, by topology key.
        spread: The spread constraints.
    """

    version: tuple[int, ...]
    changes: frozenset[Tally]
    affinity: Sum | None
    is_first: bool
    anti_affinity: dict[str, Sum]
    forbidding: dict[str, Sum]
    spread: Sequence[_Spread]

    @property
    def decide(self) -> bool:
        """Whether the class depends on other pods."""
        return bool(self.forbidding or self.has_own)

    @property
    def has_own(self) -> bool:
        """Whether the class has constraints on other pods itself."""
        return bool(self.affinity or self.anti_affinity or self.spread)

    def watched(self) -> Iterable[Tally]:
        """Return the totals that decide about the class."""
        own = () if self.affinity is None else (self.affinity,)
        sums = (*own, *self.anti_affinity.values(), *self.forbidding.values(), *[spread.sum for spread in self.spread])
        return [part.total for part in sums]


def rules_of(pod: Resident, constraints: model.Constraints, all_: Tallies) -> Rules:
    """Return the rules of a class whose constraints are declared."""
    own = [all_.of_term(term) for term in constraints.pod_anti_affinity]
    to_all = tallies.selection_of_affinity(constraints) if constraints.pod_affinity else None
    anti_affinity: dict[str, list[Tally]] = {}
    for term in constraints.pod_anti_affinity:
        anti_affinity.setdefault(term.topology_key, []).append(all_.of(tallies.Selection(sets=(term.pods,))))
    forbidding: dict[str, list[Tally]] = {}
    for tally in all_.forbidding(pod):
        forbidding.setdefault(tally.topology_key, []).append(tally)
    return Rules(
        version=all_.version(pod.namespace),
        changes=frozenset([*all_.selecting(pod), *own]),
        affinity=None if to_all is None else Sum.of([all_.of(to_all)], all_),
        is_first=to_all is not None and all(all_.belongs(pod, pods) for pods in to_all.sets),
        anti_affinity={key: Sum.of(members, all_) for key, members in anti_affinity.items()},
        forbidding={key: Sum.of(members, all_) for key, members in forbidding.items()},
        spread=[
            _Spread(
                spread,
                Sum.of([all_.of(tallies.selection_of_spread(pod.namespace, spread))], all_),
                int(spread.selector is not None and tallies.matches(spread.selector, pod.labels)),
            )
            for spread in constraints.spread
        ],
    )


class Placed(NamedTuple):
    """A pod that the cycle placed, or took back: where, which tallies it changes, and by how much."""

    node: int
    changes: frozenset[Tally]
    step: int


class _Counts:
    """The count of each domain of a topology key, placements of the cycle included.

    Args:
        domains: The nodes by the value of the key.
        counted: What is counted.
        layout: The nodes.
        among: The only nodes that count; None for all.

    Attributes:
        domains: As given.
        sums: The counts, and 0 for the nodes without the key, shape [D + 1].
    """

    __slots__ = ("_among", "_tallies", "domains", "sums")

    def __init__(self, domains: Domains, counted: Sum, layout: Layout, among: model.BoolVector | None = None) -> None:
        self.domains, self._tallies, self._among = domains, counted.tallies, among
        column = counted.total.column(layout)
        self.sums = domains.sums(column if among is None else column * among)

    def take(self, placed: Placed) -> bool:
        """Take in what the cycle placed; return whether it counts."""
        count = len(placed.changes & self._tallies)
        domain = self.domains.places[placed.node]
        if not count or domain == len(self.domains) or (self._among is not None and not self._among[placed.node]):
            return False
        self.sums[domain] += placed.step * count
        return True

    def absent(self) -> model.BoolVector:
        """Return the nodes in whose domain none is counted, and those without the key, shape [N]."""
        found: model.BoolVector = (self.sums == 0)[self.domains.of]
        return found

    def present(self) -> model.BoolVector:
        """Return the nodes in whose domain any is counted, shape [N]."""
        found: model.BoolVector = (self.sums > 0)[self.domains.of]
        return found


class SpreadCounts:
    """The counts of a spread constraint.

    Args:
        spread: The constraint.
        layout: The nodes.
        among: The nodes that count, shape [N].
    """

    __slots__ = ("_exist", "_few", "_room", "counts")

    def __init__(self, spread: _Spread, layout: Layout, among: model.BoolVector) -> None:
        domains = layout.domains(spread.constraint.topology_key)
        self.counts = _Counts(domains, spread.sum, layout, None if among.all() else among)
        self._exist = domains.sums(among.astype(np.int64)) > 0
        self._few = int(self._exist.sum()) < spread.constraint.min_domains
        self._room = spread.constraint.max_skew - spread.own

    def even(self) -> model.BoolVector:
        """Return the nodes in whose domain one more pod is not too many, shape [N]; any value without the key."""
        sums = self.counts.sums
        least = 0 if self._few else int(sums[self._exist].min())
        found: model.BoolVector = (sums <= self._room + least)[self.counts.domains.of]
        return found


class Judge:
    """Which nodes a class may use now.

    Args:
        rules: What it depends on.
        constraints: The constraints of the class.
        view: The nodes.

    Attributes:
        decides: Whether any node may be refused: pods may forbid others by labels that no node has.
        spread: Its spread constraints with their counts, in their order.
    """

    def __init__(self, rules: Rules, constraints: model.Constraints, view: View) -> None:
        layout = view.layout
        self.rules = rules
        self._seen = 0
        self._mask: model.BoolVector | None = None
        keys = dict.fromkeys(term.topology_key for term in constraints.pod_affinity)
        near = [(key, rules.affinity) for key in keys if rules.affinity is not None]
        self._affinity = [_Counts(layout.domains(key), of, layout) for key, of in near]
        self._anti_affinity = [_Counts(layout.domains(key), of, layout) for key, of in rules.anti_affinity.items()]
        forbidding = [(key, rules.forbidding[key]) for key in rules.forbidding.keys() & layout.label_keys]
        self._forbidding = [_Counts(layout.domains(key), of, layout) for key, of in forbidding]
        self._labelled = _all([layout.domains(spread.constraint.topology_key).exist for spread in rules.spread])
        self.spread = [
            SpreadCounts(spread, layout, self._labelled & view.counted(constraints, spread.constraint))
            for spread in rules.spread
        ]
        spread_counts = [spread.counts for spread in self.spread]
        parts = (
            (self._affinity, self.near),
            (self._anti_affinity, self.apart),
            (self._forbidding, self.unforbidden),
            (self.spread, self.even),
        )
        self._parts = [part for counts, part in parts if counts]
        self.decides = bool(self._parts)
        self._counts = [*self._affinity, *self._anti_affinity, *self._forbidding, *spread_counts]

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
            self._mask = _all([part() for part in self._parts])
        return self._mask

    def near(self) -> model.BoolVector:
        """Return the nodes where the terms of affinity hold, shape [N]."""
        if not self._affinity:
            return _EVERYWHERE
        found = _all([counts.present() for counts in self._affinity])
        if self.rules.is_first and not any(counts.sums.any() for counts in self._affinity):
            found = _all([counts.domains.exist for counts in self._affinity])
        return found

    def apart(self) -> model.BoolVector:
        """Return the nodes where the terms of anti-affinity hold, shape [N]."""
        return _without(self._anti_affinity)

    def unforbidden(self) -> model.BoolVector:
        """Return the nodes where no pod forbids pods of the class, shape [N]."""
        return _without(self._forbidding)

    def even(self) -> model.BoolVector:
        """Return the nodes that have all topology keys and where the spread constraints hold, shape [N]."""
        return _all([self._labelled, *[counts.even() for counts in self.spread]])


def _without(counts: Sequence[_Counts]) -> model.BoolVector:
    return _all([domain_counts.absent() for domain_counts in counts])


def _all(masks: Sequence[model.BoolVector]) -> model.BoolVector:
    if len(masks) == 1:
        return masks[0]
    found: model.BoolVector = np.logical_and.reduce(masks) if masks else _EVERYWHERE
    return found


class CycleCounts:
    """The pods that a cycle has placed, and the judges of its classes.

    Args:
        view: What the cycle began with.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._log: list[Placed] = []
        self._judges: dict[model.ClassId, Judge | None] = {}

    def judge(self, pending: Pending) -> Judge | None:
        """Return the judge of a class; None if the class does not depend on other pods."""
        task_class = pending.task_class
        if task_class.id not in self._judges:
            rules = pending.queued.rules(self._view.tallies)
            judge = Judge(rules, task_class.constraints, self._view) if rules.decide else None
            self._judges[task_class.id] = judge if judge is not None and judge.decides else None
        judge = self._judges[task_class.id]
        if judge is not None:
            judge.take(self._log)
        return judge

    def mask(self, pending: Pending) -> model.BoolVector | None:
        """Return where a class may go, shape [N], read-only; None for everywhere."""
        judge = self.judge(pending)
        return None if judge is None else judge.mask()

    def place(self, pending: Pending, node: int, step: int = 1) -> None:
        """Count a pod that the cycle places; with the step -1, count it no more."""
        changes = pending.queued.rules(self._view.tallies).changes
        if changes:
            self._log.append(Placed(node, changes, step))

    def wait(self, pending: Pending) -> None:
        """Note that a class waits for other counts of what decides about it."""
        rules = pending.queued.rules(self._view.tallies)
        for tally in rules.watched():
            self._view.tallies.wait(tally, pending.task_class.id)


_EVERYWHERE: model.BoolVector = np.ones(1, np.bool_)  # is broadcast
_EVERYWHERE.flags.writeable = False
