"""Who holds how much of each resource, for messages that name whom one waits for."""

import collections
import dataclasses
import heapq

from boathouse_policies import model

Amounts = dict[str, int]
"""Kubernetes' resource name to base units (millicores, bytes, counts)."""


def amounts(resources: model.Resources) -> Amounts:
    """Return what one pod takes, by resource name."""
    named = {
        "cpu": resources.cpu_milli,
        "memory": resources.memory_bytes,
        "ephemeral-storage": resources.ephemeral_storage_bytes,
        "pods": 1,
    }
    return named | dict(resources.extended)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Who holds a resource, as a namespace may know it: the others' owners have no names.

    Attributes:
        named: The largest holders of the namespace and what each holds, the largest first; ties by name.
        elsewhere: What all other namespaces hold together.
    """

    named: tuple[tuple[str, int], ...] = ()
    elsewhere: int = 0


class _Sums:
    """What the pods of a namespace hold, in all and by owner."""

    def __init__(self) -> None:
        self.total: Amounts = collections.defaultdict(int)
        self.by_owner: dict[str, Amounts] = {}

    def add(self, owner: str, held: Amounts, sign: int) -> None:
        """Add what one pod holds, or take it away."""
        theirs = self.by_owner.get(owner)
        if theirs is None:
            theirs = self.by_owner[owner] = collections.defaultdict(int)
        _add(theirs, held, sign)
        _add(self.total, held, sign)
        if "pods" not in theirs:
            del self.by_owner[owner]


class Holders:
    """Sums by namespace and owner of what pods hold of nodes that exist."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Sums] = {}
        self._total: Amounts = collections.defaultdict(int)

    def add(self, namespace: str, owner: str, resources: model.Resources, sign: int) -> None:
        """Add what one pod of an owner holds, or with the sign -1 take it away."""
        held, sums = amounts(resources), self._namespaces.get(namespace)
        if sums is None:
            sums = self._namespaces[namespace] = _Sums()
        sums.add(owner, held, sign)
        if not sums.by_owner:
            del self._namespaces[namespace]
        _add(self._total, held, sign)

    def top(self, resource: str, namespace: str, count: int = 3) -> Held:
        """Return the largest holders of a resource in a namespace, and what all others hold."""
        sums = self._namespaces.get(namespace)
        total = self._total.get(resource, 0)
        if sums is None:
            return Held(elsewhere=total)
        held = ((theirs.get(resource, 0), owner) for owner, theirs in sums.by_owner.items())
        largest = heapq.nsmallest(count, held, key=lambda pair: (-pair[0], pair[1]))
        return Held(
            named=tuple((owner, amount) for amount, owner in largest if amount > 0),
            elsewhere=total - sums.total.get(resource, 0),
        )


def _add(sums: Amounts, held: Amounts, sign: int) -> None:
    for name, amount in held.items():
        sums[name] += sign * amount
        if not sums[name]:
            del sums[name]
