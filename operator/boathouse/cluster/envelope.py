"""Models of the API's envelopes of objects: lists, watch events, error statuses."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import DecodeError, Raw, field

from boathouse.cluster.wire import View

T = TypeVar("T")

MALFORMED = (DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of decoding bytes that are not JSON or do not match the model."""


class ListMeta(View, frozen=True, kw_only=True):
    """`metav1.ListMeta`; `continue_` is the token of the next page."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class ListBody(View, Generic[T], frozen=True, kw_only=True):
    """Response to a LIST."""

    items: tuple[T, ...] = ()
    metadata: ListMeta = ListMeta()


class WatchEvent(View, Generic[T], frozen=True, kw_only=True):
    """One line of a WATCH."""

    type: str
    object: T


class RawWatchEvent(View, frozen=True, kw_only=True):
    """A line of a WATCH whose object is decoded later: a bookmark or an ERROR."""

    type: str
    object: Raw


class StatusDetails(View, frozen=True, kw_only=True):
    """Details of a `Status`."""

    retry_after_seconds: int = 0


class Status(View, frozen=True, kw_only=True):
    """`metav1.Status`, the body of every error."""

    kind: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Identity(View, frozen=True, kw_only=True):
    """Identity and resourceVersion of an object, for comparisons."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Identified(View, frozen=True, kw_only=True):
    """An object of any kind, decoded only for its identity."""

    metadata: Identity = Identity()
