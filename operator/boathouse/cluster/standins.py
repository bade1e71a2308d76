"""Create stand-ins for objects that cannot be decoded: their identity, and fields that reserve their resources."""

from __future__ import annotations

from typing import Any

import msgspec

from boathouse.cluster import envelope, errors, storage, wire


class _PlaceSpec(wire.View, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""


class _PlaceStatus(wire.View, frozen=True, kw_only=True):
    phase: str = ""


class _Place(wire.View, frozen=True, kw_only=True):
    """Node and scheduler of a pod."""

    spec: _PlaceSpec = _PlaceSpec()
    status: _PlaceStatus = _PlaceStatus()


def of(view: type[Any], raw: msgspec.Raw | bytes) -> Any:
    """Return a stand-in of this type; for a pod, a `wire.UnreadablePod`.

    Raises:
        errors.DecodeError: The object's identity is unreadable.
    """
    try:
        identity = msgspec.json.decode(raw, type=envelope.Identified).metadata
        int(identity.resource_version)
    except (*envelope.MALFORMED, ValueError) as error:
        raise errors.DecodeError(f"an object without an identity: {error}; {bytes(raw)[:200]!r}") from error
    metadata = wire.ObjectMeta(
        name=identity.name,
        namespace=identity.namespace,
        uid=identity.uid,
        resource_version=identity.resource_version,
    )
    if view is wire.PodView:
        return _pod(metadata, raw)
    if view is storage.VolumeView:  # no known node can attach it
        nowhere = storage.VolumeNodeAffinity(required=wire.NodeSelector())
        return storage.VolumeView(metadata=metadata, spec=storage.VolumeSpec(node_affinity=nowhere))
    return view(metadata=metadata)


def _pod(metadata: wire.ObjectMeta, raw: msgspec.Raw | bytes) -> wire.UnreadablePod:
    try:
        place = msgspec.json.decode(raw, type=_Place)
    except envelope.MALFORMED:
        return wire.UnreadablePod(metadata=metadata)
    spec = wire.PodSpec(node_name=place.spec.node_name, scheduler_name=place.spec.scheduler_name)
    return wire.UnreadablePod(metadata=metadata, spec=spec, status=wire.PodStatus(phase=place.status.phase))
