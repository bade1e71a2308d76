"""Set objects aside that cannot be processed, so that an error of one object affects only this object.

Work on one object (of a LIST or WATCH, its translation into the scheduler's model, a cycle, a reconcile) runs within
`guard`. An exception is logged with its traceback, published as an event once, and counted; then the work continues
with the next object. Cancellation passes through.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import logging
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from boathouse.cluster import events as event_writer
from boathouse.cluster import store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boathouse.cluster.catalogue import Resource

T = TypeVar("T")
V = TypeVar("V", bound=store.HasMetadata)

log = logging.getLogger(__name__)

EVENT_REASON = "SetAside"
_REMEMBERED = 4096
_MESSAGE_LENGTH = 512


class Reason(enum.StrEnum):
    """Where the error occurred; the values of the metric's label `reason`."""

    DECODING = "DecodingFailed"
    """The API server's JSON does not have the shape of its kind."""
    STORING = "StoringFailed"
    """Preparing the object for the local store failed."""
    TRANSLATION = "TranslationFailed"
    """A field has a value that the scheduler's model cannot express."""
    HANDLING = "HandlingFailed"
    """Handling a change of the object failed."""
    SCHEDULING = "SchedulingFailed"
    """A scheduling cycle failed because of the object."""
    WRITING = "WritingFailed"
    """Writing about the object failed before a request was sent."""
    RECONCILING = "ReconcilingFailed"
    """Reconciling the object failed."""


class Identified(Protocol):
    """Identity of an object; `wire.ObjectMeta` implements it."""

    @property
    def name(self) -> str:
        """`metadata.name`."""

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; empty for cluster-scoped objects."""

    @property
    def uid(self) -> str:
        """`metadata.uid`."""


class Boundary:
    """Sets objects aside, and remembers them so that each is reported once.

    Args:
        events: Publishes events, or None.

    Attributes:
        counts: Number of objects that were set aside, by kind and reason.
    """

    def __init__(self, events: event_writer.EventSink | None = None) -> None:
        self.counts: collections.Counter[tuple[str, Reason]] = collections.Counter()
        self._events = events
        self._reported: collections.OrderedDict[tuple[str, str, Reason], None] = collections.OrderedDict()

    @contextlib.contextmanager
    def guard(self, resource: Resource[Any], subject: Identified, reason: Reason) -> Iterator[None]:
        """Set the subject aside if the block raises."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the border: one object's fault must not stop the others'
            self.set_aside(resource, subject, reason, error)

    def run(
        self,
        resource: Resource[Any],
        subject: Identified,
        reason: Reason,
        call: Callable[[T], object],
        argument: T,
    ) -> None:
        """Call with the argument and set the subject aside if the call raises; costs a tenth of `guard`."""
        try:
            call(argument)
        except Exception as error:  # noqa: BLE001 - the border: one object's fault must not stop the others'
            self.set_aside(resource, subject, reason, error)

    def set_aside(self, resource: Resource[Any], subject: Identified, reason: Reason, error: Exception) -> None:
        """Log, count and report an object and its error, unless it was reported before.

        Args:
            resource: The object's kind.
            subject: The object.
            reason: Where the error occurred.
            error: The error.
        """
        key = (resource.kind, subject.uid or f"{subject.namespace}/{subject.name}", reason)
        if key in self._reported:
            self._reported.move_to_end(key)
            return
        self._reported[key] = None
        if len(self._reported) > _REMEMBERED:
            self._reported.popitem(last=False)
        self.counts[resource.kind, reason] += 1
        where = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
        log.error("%s %s is set aside: %s", resource.kind, where, reason, exc_info=error)
        if self._events is not None:
            about = event_writer.reference(resource, subject.namespace, subject.name, subject.uid)
            note = f"Boathouse cannot represent this {resource.kind} and sets it aside ({reason}): {describe(error)}"
            self._events.publish(about, type_="Warning", reason=EVENT_REASON, action="SettingAside", note=note)


class Dispatcher(Generic[V]):
    """Passes each change of a kind's objects to all subscribers, in the order of their subscription.

    An exception of a subscriber sets the object aside. The other subscribers still get the change.

    Args:
        resource: The kind.
        aside: Sets an object aside if a subscriber raises.
    """

    def __init__(self, resource: Resource[Any], aside: Boundary) -> None:
        self._resource = resource
        self._aside = aside
        self._subscribers: list[Callable[[store.Change[V]], object]] = []

    def subscribe(self, call: Callable[[store.Change[V]], object]) -> None:
        """Call the function with each change from now on."""
        self._subscribers.append(call)

    def __call__(self, change: store.Change[V]) -> None:
        """Deliver a change."""
        subject = store.subject(change).metadata
        for call in self._subscribers:
            self._aside.run(self._resource, subject, Reason.HANDLING, call, change)


def describe(error: Exception) -> str:
    """Return a readable text of an error, of limited length."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= _MESSAGE_LENGTH else f"{text[:_MESSAGE_LENGTH]}..."
