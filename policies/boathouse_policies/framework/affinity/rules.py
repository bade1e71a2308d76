"""The tallies that decide about a class, and those that its pods change."""

import collections
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from boathouse_policies import model
from boathouse_policies.framework.affinity import tallies
from boathouse_policies.framework.affinity.tallies import Resident, Tallies, Tally
from boathouse_policies.model.values import value


class Sum(NamedTuple):
    """Several tallies, and their total."""

    tallies: frozenset[Tally]
    total: Tally


class Spread(NamedTuple):
    """A spread constraint, with what it counts, and how many of that a pod of the class is: 1 or 0."""

    constraint: model.Spread
    sum: Sum
    own: int


@value(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides where a class may go beside other pods: a memo, as long as the version is equal."""

    version: tuple[int, ...]
    changes: frozenset[Tally]
    affinity: Sum | None  # what the terms of affinity count; None without such terms
    is_first: bool  # whether its own pods satisfy them, so that the first pod may start anywhere
    anti_affinity: dict[str, Sum]  # what each term of anti-affinity counts, by topology key
    forbidding: dict[str, Sum]  # the pods that forbid pods of the class next to them, by topology key
    spread: Sequence[Spread]

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
        sums = [*self.anti_affinity.values(), *self.forbidding.values(), *[spread.sum for spread in self.spread]]
        return [part.total for part in (sums if self.affinity is None else [self.affinity, *sums])]


def rules_of(pod: Resident, constraints: model.Constraints, all_: Tallies) -> Rules:
    """Return the rules of a class whose constraints are declared."""

    def sum_of(members: Collection[Tally]) -> Sum:
        return Sum(found := frozenset(members), all_.total(found))

    to_all = tallies.selection_of_affinity(constraints) if constraints.pod_affinity else None
    anti_affinity: dict[str, list[Tally]] = collections.defaultdict(list)
    forbidding: dict[str, list[Tally]] = collections.defaultdict(list)
    for term in constraints.pod_anti_affinity:
        anti_affinity[term.topology_key].append(all_.of(tallies.Selection(sets=(term.pods,))))
    for tally in all_.forbidding(pod):
        forbidding[tally.topology_key].append(tally)
    return Rules(
        version=all_.version(pod.namespace),
        changes=frozenset([*all_.selecting(pod), *map(all_.of_term, constraints.pod_anti_affinity)]),
        affinity=None if to_all is None else sum_of([all_.of(to_all)]),
        is_first=to_all is not None and all(all_.belongs(pod, pods) for pods in to_all.sets),
        anti_affinity={key: sum_of(members) for key, members in anti_affinity.items()},
        forbidding={key: sum_of(members) for key, members in forbidding.items()},
        spread=[
            Spread(
                spread,
                sum_of([all_.of(tallies.selection_of_spread(pod.namespace, spread))]),
                int(spread.selector is not None and tallies.matches(spread.selector, pod.labels)),
            )
            for spread in constraints.spread
        ],
    )
