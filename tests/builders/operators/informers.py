"""An informer under test: it runs, writes down the changes it reports, and is stopped at the end."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager, contextmanager, suppress
from unittest import mock

from boathouse.cluster import boundary, catalogue, informer, retries, store
from tests.wire import waiting

QUICK = retries.Backoff(base_s=0.01, cap_s=0.05)


class ChangeLog:
    """What an informer said, and what it would make of the cluster."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.changes: list[store.Change] = []
        self.believed: dict[str, str] = {}

    def take(self, change: store.Change) -> None:
        self.reported.append(f"{type(change).__name__} {change.key.partition('/')[2] or change.key}")
        self.changes.append(change)
        match change:
            case store.Added(key=key, new=new):
                assert key not in self.believed, f"{key} was added twice"
                self.believed[key] = new.metadata.uid
            case store.Modified(key=key, old=old, new=new):
                assert self.believed[key] == old.metadata.uid == new.metadata.uid
                assert int(old.metadata.resource_version) < int(new.metadata.resource_version)
            case store.Deleted(key=key, old=old):
                assert self.believed.pop(key) == old.metadata.uid

    def fresh(self) -> list[str]:
        """Return the changes reported since the last time."""
        words, self.reported = self.reported, []
        return words


@asynccontextmanager
async def following(api, client, resource=catalogue.PODS, *, stall_s: float = 60.0, seed: int = 1, **options):
    """Run an informer until it has listed and watches; give it and its follower."""
    follower, aside = ChangeLog(), options.pop("aside", None) or boundary.Boundary()
    followed = informer.Informer(client, resource, on_change=follower.take, backoff=QUICK, aside=aside, **options)
    quick = mock.patch.object(informer, "STALL_S", stall_s)
    with quick, mock.patch.object(retries, "JITTER", random.Random(seed)):
        task = asyncio.create_task(followed.run())
        try:
            await waiting.eventually(followed.synced.is_set)
            await waiting.eventually(lambda: api.watches.count(resource.plural))
            yield followed, follower
            assert not task.done(), "the informer ended"
            assert not any(reason is boundary.Reason.HANDLING for _, reason in aside.counts), "the follower failed"
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@contextmanager
def missing(api):
    """Within it the informer hears nothing; at the end the connection breaks."""
    api.watches.silence("pods")
    try:
        yield
    finally:
        api.watches.cut("pods")


def stored(api, plural: str = "pods", *, selects=lambda _: True) -> dict[str, tuple[str, str]]:
    """Return what the server holds: key to uid and resourceVersion."""
    return {key: _state(m["metadata"]) for key, m in api.objects(plural).items() if selects(m)}


def cached(followed: informer.Informer) -> dict[str, tuple[str, str]]:
    """Return what the informer holds, in the same shape."""
    return {key: (o.metadata.uid, o.metadata.resource_version) for key, o in followed.objects.items()}


def _state(metadata) -> tuple[str, str]:
    return metadata["uid"], metadata["resourceVersion"]
