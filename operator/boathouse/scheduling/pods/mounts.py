"""Which claims are mounted where, by pods of all schedulers, those on their way included."""

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from boathouse_policies import model

Mounted: TypeAlias = tuple[model.NodeName, tuple[str, ...]]
"""A node, and the claims that a pod mounts there."""


class Mounts:
    """Indexes of pods with claims, by node and by claim.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._nodes: dict[model.NodeName, dict[model.TaskId, tuple[str, ...]]] = {}
        self._users: dict[str, dict[model.TaskId, None]] = {}

    def replace(self, pod: model.TaskId, former: Mounted | None, mounted: Mounted | None) -> None:
        """Note that a pod mounts these claims instead of others; None for no claims."""
        self.version += 1
        if former is not None:
            _discard(self._nodes, former[0], pod)
            for claim in former[1]:
                _discard(self._users, claim, pod)
        if mounted is not None:
            self._nodes.setdefault(mounted[0], {})[pod] = mounted[1]
            for claim in mounted[1]:
                self._users.setdefault(claim, {})[pod] = None

    def on(self, node: model.NodeName, *, but: model.TaskId | None = None) -> set[str]:
        """Return the claims mounted on a node by pods other than that one."""
        return {claim for pod, claims in self._nodes.get(node, {}).items() if pod != but for claim in claims}

    def used_by_others(self, claims: Iterable[str], pod: model.TaskId | None = None) -> bool:
        """Whether a pod other than that one mounts any of the claims."""
        return any(self._users.get(claim, {}).keys() - {pod} for claim in claims)


K = TypeVar("K", bound=str)
V = TypeVar("V")


def _discard(index: dict[K, dict[model.TaskId, V]], key: K, pod: model.TaskId) -> None:
    del index[key][pod]
    if not index[key]:
        del index[key]
