"""Which claims are mounted where, by pods of all schedulers, those on their way included."""

from collections.abc import Iterable
from typing import TypeVar

from boathouse_policies import model


class Mounts:
    """An index of pods with claims.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._pods: dict[model.TaskId, tuple[model.NodeName, tuple[str, ...]]] = {}
        self._nodes: dict[model.NodeName, set[model.TaskId]] = {}
        self._users: dict[str, set[model.TaskId]] = {}

    def add(self, pod: model.TaskId, node: model.NodeName, claims: tuple[str, ...]) -> None:
        """A pod mounts claims on a node."""
        if self._pods.get(pod) == (node, claims):
            return
        self.remove(pod)
        self.version += 1
        self._pods[pod] = (node, claims)
        self._nodes.setdefault(node, set()).add(pod)
        for claim in claims:
            self._users.setdefault(claim, set()).add(pod)

    def remove(self, pod: model.TaskId) -> bool:
        """A pod mounts nothing any more; return whether it did."""
        known = self._pods.pop(pod, None)
        if known is None:
            return False
        self.version += 1
        node, claims = known
        _discard(self._nodes, node, pod)
        for claim in claims:
            _discard(self._users, claim, pod)
        return True

    def on(self, node: model.NodeName, *, but: model.TaskId | None = None) -> set[str]:
        """Return the claims mounted on a node by pods other than that one."""
        return {claim for pod in self._nodes.get(node, ()) if pod != but for claim in self._pods[pod][1]}

    def used_by_others(self, claims: Iterable[str], pod: model.TaskId | None = None) -> bool:
        """Whether a pod other than that one mounts any of the claims."""
        return any(self._users.get(claim, set()) - {pod} for claim in claims)


K = TypeVar("K", bound=str)


def _discard(index: dict[K, set[model.TaskId]], key: K, pod: model.TaskId) -> None:
    members = index[key]
    members.discard(pod)
    if not members:
        del index[key]
