"""Read objects that a job depends on: its namespace and its PriorityClass."""

from collections.abc import Callable
from typing import Final

from boathouse.cluster import catalogue, client, errors

PRIORITY_GOOD_S: Final = 60.0
"""How long the value of a PriorityClass is cached."""
PRIORITIES_KEPT: Final = 1024


class RelatedObjects:
    """Reads the objects, and caches the values of PriorityClasses.

    Args:
        monotonic: Returns monotonic seconds.
    """

    def __init__(self, api: client.ApiClient, monotonic: Callable[[], float]) -> None:
        self._api, self._monotonic = api, monotonic
        self._priorities: dict[str, tuple[float, int]] = {}

    async def is_terminating(self, namespace: str) -> bool:
        """Return whether the namespace is being deleted, so that no pod can be created in it."""
        try:
            return (await self._api.get(catalogue.NAMESPACES, namespace)).metadata.deletion_timestamp is not None
        except errors.NotFound:
            return False

    async def priority(self, name: str) -> int:
        """Return the value of a PriorityClass; 0 without a name, and for a class that does not exist.

        The API server rejects pods with a class that does not exist.
        """
        if not name:
            return 0
        known_s, value = self._priorities.get(name, (float("-inf"), 0))
        now_s = self._monotonic()
        if now_s - known_s > PRIORITY_GOOD_S:
            try:
                value = (await self._api.get(catalogue.PRIORITY_CLASSES, name)).get("value", 0)
            except errors.NotFound:
                value = 0
            if len(self._priorities) >= PRIORITIES_KEPT:  # jobs may name any class
                self._priorities.clear()
            self._priorities[name] = (now_s, value)
        return value
