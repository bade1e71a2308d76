"""A second look at the MRJobs that Kopf tells of: a LIST now and then, so that nothing it missed is missed for long."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from boathouse.cluster import catalogue, client, errors
from boathouse.services.mrjob.jobstore import JobStore, key_of
from boathouse.telemetry import logs

_log = logs.get(__name__)
_MRJOBS = catalogue.MRJOBS.untyped()

EVERY_S: Final = 120.0
FIRST_S: Final = 20.0
PAGE: Final = 20
"""MRJobs in a page: one may have more than 1 MB, and a page is held whole."""


class Resync:
    """Compares the job store with a LIST.

    Args:
        api: The API server.
        jobs: What we know.
        namespaces: Where we act; none for everywhere.
    """

    def __init__(self, api: client.ApiClient, jobs: JobStore, namespaces: Sequence[str]) -> None:
        self._api = api
        self._jobs = jobs
        self._namespaces = namespaces
        self._listed = False

    def listed(self) -> bool:
        """Whether all MRJobs were listed since the process began to lead."""
        return self._listed

    async def run(self) -> None:
        """Look every two minutes until cancelled."""
        await asyncio.sleep(FIRST_S)
        while True:
            try:
                await self.run_once()
            except errors.ClusterError as error:
                _log.warning("MRJobs could not be listed", error=str(error))
            await asyncio.sleep(EVERY_S)

    async def run_once(self) -> None:
        """Take in what is newer, and drop what is gone; page by page, so that no second copy of all is held."""
        before, began = set(self._jobs.keys()), self._jobs.begin()
        for namespace in self._namespaces or (None,):
            async for body in self._every(namespace):
                before.discard(key_of(body))
                self._jobs.seen(body, began)
        for key in sorted(before):
            await self._check(key)
        self._listed = True

    async def _every(self, namespace: str | None) -> AsyncIterator[dict[str, Any]]:
        token = ""
        while True:
            page = await self._api.list_page(_MRJOBS, namespace, limit=PAGE, continue_token=token)
            token = page.continue_token
            for body in page.items:
                yield body
            if not token:
                return

    async def _check(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        known, began = self._jobs.get(key), self._jobs.begin()  # from here on another one may come under that name
        if known is None:
            return
        try:
            body = await self._api.get(_MRJOBS, name, namespace)
            self._jobs.seen(body, began)
        except errors.NotFound:
            _log.info("an MRJob was deleted without our hearing of it", job=key)
            self._jobs.gone(known)
