"""Define what a kind of custom resource tells the frame about itself."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NewType

from boathouse.cluster import catalogue, wire
from boathouse.resources import names

Body = Mapping[str, Any]
ObjectUid = NewType("ObjectUid", str)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindDefinition:
    """The constants of a kind.

    Attributes:
        resource: Where its objects are under the API server.
        noun: What a message to people calls one of its objects.
        phases: All phases of `status.phase`.
        terminal_phases: The phases of `status.phase` that an object does not leave.
        urgent_fields: Fields of the status whose changes are written at once, beside the phase and the conditions.
        phase_events: The reasons of the events about phases whose event is not named as the phase.
    """

    resource: catalogue.Resource[wire.Manifest]
    noun: str
    phases: Sequence[str]
    terminal_phases: frozenset[str]
    urgent_fields: tuple[str, ...] = ()
    phase_events: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def has_ended(self, body: Body) -> bool:
        """Return whether only the clean-up of an object is left: it is in a terminal phase or deleted."""
        return (body.get("status") or {}).get("phase") in self.terminal_phases or is_deleted(body)

    def has_finalizer(self, body: Body) -> bool:
        """Return whether the object has the finalizer that holds it until its reconciler has cleaned up."""
        return names.FINALIZER in (body["metadata"].get("finalizers") or ())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an object cannot run, for the condition `Admitted`."""

    reason: str
    message: str


def is_deleted(body: Body) -> bool:
    """Return whether the deletion of an object was requested."""
    return bool(body["metadata"].get("deletionTimestamp"))


def key_of(body: Body) -> str:
    """Return the key of an object, `namespace/name`."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def namespace_of(key: str) -> str:
    """Return the namespace of a key."""
    return key.partition("/")[0]


def revision(body: Body) -> int:
    """Return the resource version as a number: versions are numbers that grow (Kubernetes 1.35)."""
    return int(body["metadata"]["resourceVersion"])
