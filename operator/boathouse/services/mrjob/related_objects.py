"""What other people's objects say about a job: the ConfigMaps that its files need, the value of its PriorityClass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boathouse.cluster import catalogue, client, errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse.services.mrjob.job.model import Job

_CONFIG_MAPS = catalogue.CONFIG_MAPS.untyped()

PRIORITY_GOOD_S: Final = 60.0
"""How long a PriorityClass' value is remembered."""
PRIORITIES_KEPT: Final = 1024


class RelatedObjects:
    """Reads them, and remembers what changes rarely.

    Args:
        monotonic: Seconds that only grow.
    """

    def __init__(self, api: client.ApiClient, monotonic: Callable[[], float]) -> None:
        self._api, self._monotonic = api, monotonic
        self._priorities: dict[str, tuple[float, int]] = {}

    async def missing(self, job: Job) -> list[str]:
        """ConfigMaps and keys that files need; a pod that mounts a missing one would wait without saying why."""
        missing = []
        for file in job.files:
            reference = file.config_map_key_ref
            if reference is None:
                continue
            try:
                found = await self._api.get(_CONFIG_MAPS, reference.name, job.namespace)
            except errors.NotFound:
                missing.append(f'file {file.name}: there is no ConfigMap "{reference.name}"')
                continue
            if reference.key not in {**(found.get("data") or {}), **(found.get("binaryData") or {})}:
                missing.append(f'file {file.name}: ConfigMap "{reference.name}" has no key "{reference.key}"')
        return missing

    async def is_terminating(self, namespace: str) -> bool:
        """Whether the namespace is being deleted: no pod can be created in it any more."""
        try:
            return (await self._api.get(catalogue.NAMESPACES, namespace)).metadata.deletion_timestamp is not None
        except errors.NotFound:
            return False

    async def priority(self, job: Job) -> int:
        """The value of the job's PriorityClass, as its pods will have it; the API server refuses one that is absent."""
        name = job.template.priority_class
        if not name:
            return 0
        known_s, value = self._priorities.get(name, (float("-inf"), 0))
        now_s = self._monotonic()
        if now_s - known_s > PRIORITY_GOOD_S:
            try:
                value = (await self._api.get(catalogue.PRIORITY_CLASSES, name)).get("value", 0)
            except errors.NotFound:
                value = 0
            if len(self._priorities) >= PRIORITIES_KEPT:  # jobs may name any
                self._priorities.clear()
            self._priorities[name] = (now_s, value)
        return value
