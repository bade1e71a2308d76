"""Pass the events that Kopf receives about custom resources to the object stores.

They are handlers of raw events: they add no annotations to resources and need no finalizer. A crash loses nothing,
because the next list has all objects.
"""

from collections.abc import Awaitable, Callable, Iterable

import kopf

from boathouse.services.frame.object_store import ObjectStore


def registry(stores: Iterable[ObjectStore]) -> kopf.OperatorRegistry:
    """Return a new registry, whose handlers pass the events of each kind to its store."""
    result = kopf.OperatorRegistry()
    for objects in stores:
        resource = objects.kind.resource
        kopf.on.event(resource.group, resource.version, resource.plural, registry=result)(_handler(objects))
    return result


def _handler(objects: ObjectStore) -> Callable[..., Awaitable[None]]:
    async def changed(event: kopf.RawEvent, **_: object) -> None:
        take_in = objects.on_deleted if event["type"] == "DELETED" else objects.on_object
        take_in(dict(event["object"]))

    return changed
