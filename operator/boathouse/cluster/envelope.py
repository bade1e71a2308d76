"""What wraps objects on the wire: lists, watch events, error statuses."""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import DecodeError, Raw, field

from boathouse.cluster.wire import View

T = TypeVar("T")

MALFORMED = (DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding of JSON raises for bytes that are not JSON, or have another shape."""


class ListMeta(View, frozen=True, kw_only=True):
    """``continue_`` is the token of the next page."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class ListBody(View, Generic[T], frozen=True, kw_only=True):
    """The answer to a LIST."""

    items: tuple[T, ...] = ()
    metadata: ListMeta = ListMeta()


class WatchEvent(View, Generic[T], frozen=True, kw_only=True):
    """One line of a WATCH."""

    type: str
    object: T


class RawWatchEvent(View, frozen=True, kw_only=True):
    """A line whose object is decoded later: a bookmark or an ERROR."""

    type: str
    object: Raw


class StatusDetails(View, frozen=True, kw_only=True):
    """Details of a ``Status``."""

    retry_after_seconds: int = 0


class Status(View, frozen=True, kw_only=True):
    """``metav1.Status``, the body of every error."""

    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Identity(View, frozen=True, kw_only=True):
    """Which object it is, in which state: the least that a comparison needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``, or ``name`` for what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Identified(View, frozen=True, kw_only=True):
    """Any object, read for its identity only."""

    metadata: Identity = Identity()
