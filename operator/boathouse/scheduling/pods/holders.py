"""Who holds how much of each resource, for messages that name whom one waits for."""

import dataclasses
import heapq

from boathouse_policies import model

Amounts = dict[str, int]
"""Kubernetes' resource name to base units (millicores, bytes, counts)."""

_ALL = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Who holds a resource, as a namespace may know it: the others' owners have no names.

    Attributes:
        named: The largest holders of the namespace and what each holds, the largest first; ties by name.
        elsewhere: What all other namespaces hold together.
    """

    named: tuple[tuple[str, int], ...] = ()
    elsewhere: int = 0


class Holders:
    """Sums by namespace and owner of what pods hold of nodes that exist."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, Amounts]] = {}
        self._totals: dict[str, Amounts] = {}  # by namespace, and of all

    def add(self, namespace: str, owner: str, resources: model.Resources, sign: int) -> None:
        """Add what one pod of an owner holds, or with the sign -1 take it away."""
        held, owners = resources.by_name, self._owners.setdefault(namespace, {})
        for sums, key in ((owners, owner), (self._totals, namespace), (self._totals, _ALL)):
            total = sums.setdefault(key, {})
            for name, amount in held.items():
                total[name] = total.get(name, 0) + sign * amount
            if not total["pods"]:
                del sums[key]
        if not owners:
            del self._owners[namespace]

    def top(self, resource: str, namespace: str, count: int = 3) -> Held:
        """Return the largest holders of a resource in a namespace, and what all others hold."""
        owners = self._owners.get(namespace, {})
        held = ((theirs.get(resource, 0), owner) for owner, theirs in owners.items())
        largest = heapq.nsmallest(count, held, key=lambda pair: (-pair[0], pair[1]))
        here, everywhere = (self._totals.get(key, {}).get(resource, 0) for key in (namespace, _ALL))
        return Held(
            named=tuple((owner, amount) for amount, owner in largest if amount > 0), elsewhere=everywhere - here
        )
