"""Pods as the store sees them, in one call each."""

from __future__ import annotations

from boathouse.cluster import store, wire


def pod(name: str, revision: int, *, uid: str = "u1", phase: str = "Pending") -> wire.PodView:
    metadata = wire.ObjectMeta(name=name, namespace="demo", uid=uid, resource_version=str(revision))
    return wire.PodView(metadata=metadata, status=wire.PodStatus(phase=phase))


def summaries(*changes: store.Change[wire.PodView]) -> list[str]:
    """Return the changes as short words: `Added a`."""
    return [f"{type(change).__name__} {change.key.removeprefix('demo/')}" for change in changes]


def store_of(*pods: wire.PodView, revision: int = 10) -> store.Store[wire.PodView]:
    """Return a store that has listed these pods at that revision."""
    known: store.Store[wire.PodView] = store.Store()
    listing = store.Listing(known, revision)
    list(listing.page(pods))
    list(listing.finish())
    return known
