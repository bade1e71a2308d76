"""Compare the object store with a LIST at intervals, to find objects that a watch missed."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from boathouse.cluster import client, errors
from boathouse.services.frame.kind import key_of
from boathouse.services.frame.object_store import ObjectStore
from boathouse.telemetry import logs

_log = logs.get(__name__)

EVERY_S: Final = 120.0
FIRST_S: Final = 20.0
PAGE: Final = 20
"""Objects in a page: an object may have more than 1 MB, and a page is in memory as a whole."""


class Resync:
    """Lists the objects of a kind.

    Args:
        objects: The store to compare with.
        namespaces: Namespaces where the operator runs jobs; empty for all.

    Attributes:
        objects: The store to compare with.
        listed: Whether all objects were listed since this process became the leader.
    """

    def __init__(self, api: client.ApiClient, objects: ObjectStore, namespaces: Sequence[str]) -> None:
        self._api = api
        self.objects = objects
        self._namespaces = namespaces
        self.listed = False

    async def run_once(self) -> None:
        """Store newer objects and drop deleted ones, page by page, so that memory holds no second copy of all."""
        before, began = set(self.objects.keys()), self.objects.begin()
        for namespace in self._namespaces or (None,):
            async for body in self._list(namespace):
                before.discard(key_of(body))
                self.objects.on_object(body, began)
        for key in sorted(before):
            await self._check(key)
        self.listed = True

    async def _list(self, namespace: str | None) -> AsyncIterator[dict[str, Any]]:
        token = ""
        while True:
            page = await self._api.list_page(self.objects.kind.resource, namespace, limit=PAGE, continue_token=token)
            token = page.continue_token
            for body in page.items:
                yield body
            if not token:
                return

    async def _check(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        known, began = self.objects.get(key), self.objects.begin()  # another object may have this name from now on
        if known is None:
            return
        try:
            body = await self._api.get(self.objects.kind.resource, name, namespace)
            self.objects.on_object(body, began)
        except errors.NotFound:
            _log.info("the deletion of an object was missed", kind=self.objects.kind.resource.kind, object=key)
            self.objects.on_deleted(known)
