"""Objects that cannot be represented are set aside: what one object causes concerns that object alone.

At each border where objects come in (a LIST, a WATCH, the translation into the scheduler's model, a cycle, a reconcile)
the work on one object stands in `guard`. Whatever it raises is a fault of that object: it is logged with its traceback
and reported as an event once, counted, and the work goes on with the next object. Cancellation passes through.
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
    """Where the fault showed: the values of the metric's label `reason`."""

    DECODING = "DecodingFailed"
    """The API server's JSON does not have the shape of its kind."""
    STORING = "StoringFailed"
    """Preparing the object for the local store failed."""
    TRANSLATION = "TranslationFailed"
    """A field has a value that the scheduler's model cannot express."""
    HANDLING = "HandlingFailed"
    """Taking a change of the object in failed."""
    SCHEDULING = "SchedulingFailed"
    """A scheduling cycle failed because of the object."""
    WRITING = "WritingFailed"
    """Writing about the object failed before a request was sent."""
    RECONCILING = "ReconcilingFailed"
    """Reconciling the object failed."""


class Identified(Protocol):
    """Says which object it is; ``wire.ObjectMeta`` does."""

    @property
    def name(self) -> str:
        """``metadata.name``."""

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; empty for what has none."""

    @property
    def uid(self) -> str:
        """``metadata.uid``."""


class Boundary:
    """Remembers which objects were set aside, so that each is reported once.

    Args:
        events: Records events; None for none.

    Attributes:
        counts: How many objects were set aside, by kind and reason.
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
        """Log, count and report an object and its fault, unless that was done already.

        Args:
            resource: The object's kind.
            subject: Which object.
            reason: Where the fault showed.
            error: The fault.
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
    """Pass each change of a kind's objects to all subscribers, in the order in which they subscribed.

    An exception of a subscriber sets the object aside, and keeps the change from no other subscriber.

    Args:
        resource: The kind.
        aside: Where objects go that a subscriber raises for.
    """

    def __init__(self, resource: Resource[Any], aside: Boundary) -> None:
        self._resource = resource
        self._aside = aside
        self._subscribers: list[Callable[[store.Change[V]], object]] = []

    def subscribe(self, call: Callable[[store.Change[V]], object]) -> None:
        """Call with each change from now on."""
        self._subscribers.append(call)

    def __call__(self, change: store.Change[V]) -> None:
        """Deliver a change."""
        subject = store.subject(change).metadata
        for call in self._subscribers:
            self._aside.run(self._resource, subject, Reason.HANDLING, call, change)


def describe(error: Exception) -> str:
    """Return an error for people, of bounded length."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= _MESSAGE_LENGTH else f"{text[:_MESSAGE_LENGTH]}..."
