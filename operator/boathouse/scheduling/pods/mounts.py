"""Which claims are mounted where, by pods of all schedulers, those on their way included."""

from collections.abc import Iterable
from typing import TypeVar

from boathouse_policies import model


class Mounts:
    """Indexes of pods with claims, by node and by claim.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._nodes: dict[model.NodeName, dict[model.TaskId, tuple[str, ...]]] = {}
        self._users: dict[str, dict[model.TaskId, None]] = {}

    def add(self, pod: model.TaskId, node: model.NodeName, claims: tuple[str, ...]) -> None:
        """Note that a pod mounts claims on a node."""
        self.version += 1
        self._nodes.setdefault(node, {})[pod] = claims
        for claim in claims:
            self._users.setdefault(claim, {})[pod] = None

    def remove(self, pod: model.TaskId, node: model.NodeName, claims: tuple[str, ...]) -> None:
        """Note that a pod does not mount its claims any more."""
        self.version += 1
        _discard(self._nodes, node, pod)
        for claim in claims:
            _discard(self._users, claim, pod)

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
