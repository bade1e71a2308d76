"""Kopf as the source of "this MRJob changed". What follows from it is the services' business.

Handlers of raw events only: they put no annotations on resources, need no finalizer, and lose nothing when the process
dies, because the next list shows everything again.
"""

from typing import Any, Protocol

import kopf

from boathouse.resources import names


class Sink(Protocol):
    """Takes resources in: the job store is one."""

    def seen(self, body: dict[str, Any]) -> None:
        """A watch or a list showed the resource."""
        ...

    def gone(self, body: dict[str, Any]) -> None:
        """The resource was deleted."""
        ...


def registry(sink: Sink) -> kopf.OperatorRegistry:
    """A registry of its own, so that importing this module registers nothing."""
    result = kopf.OperatorRegistry()

    @kopf.on.event(names.GROUP, names.VERSION, names.MRJOB_PLURAL, registry=result)
    async def changed(event: kopf.RawEvent, **_: object) -> None:
        body = dict(event["object"])
        if event["type"] == "DELETED":
            sink.gone(body)
        else:
            sink.seen(body)

    return result
