"""Set objects aside that cannot be processed, so that an error of one object affects only this object.

An exception in the work on one object is logged with its traceback, published as an event once, and counted; then the
work continues with the next object. Cancellation passes through.
"""

import collections
import enum
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from boathouse.cluster import events as event_writer
from boathouse.cluster.catalogue import Resource
from boathouse.cluster.wire import ObjectMeta

T = TypeVar("T")
log = logging.getLogger(__name__)
EVENT_REASON = "SetAside"
_REMEMBERED = 4096
_MESSAGE_LENGTH = 512


class Reason(enum.StrEnum):
    """Where the error occurred; the values of the metric's label `reason`."""

    DECODING = "DecodingFailed"
    """The API server's JSON does not have the shape of its kind."""
    STORING = "StoringFailed"
    TRANSLATION = "TranslationFailed"
    """A field has a value that the scheduler's model cannot express."""
    HANDLING = "HandlingFailed"
    SCHEDULING = "SchedulingFailed"
    WRITING = "WritingFailed"
    """Writing about the object failed before a request was sent."""
    RECONCILING = "ReconcilingFailed"


class Boundary:
    """Sets objects aside, counts them by kind and reason, and remembers them so that each is reported once."""

    def __init__(self, events: event_writer.EventWriter | None = None) -> None:
        self.counts: collections.Counter[tuple[str, Reason]] = collections.Counter()
        self._events = events
        self._reported: collections.OrderedDict[tuple[str, str, Reason], None] = collections.OrderedDict()

    def run(
        self, resource: Resource[Any], subject: ObjectMeta, reason: Reason, call: Callable[[T], object], argument: T
    ) -> None:
        """Call with the argument and set the subject aside if it raises. A context manager costs ten times as much."""
        try:
            call(argument)
        except Exception as error:  # noqa: BLE001 - the border: one object's fault must not stop the others'
            self.set_aside(resource, subject, reason, error)

    def set_aside(self, resource: Resource[Any], subject: ObjectMeta, reason: Reason, error: Exception) -> None:
        """Log, count and report an object and its error, unless it was reported before."""
        key = (resource.kind, subject.uid or subject.key, reason)
        if key in self._reported:
            self._reported.move_to_end(key)
            return
        self._reported[key] = None
        if len(self._reported) > _REMEMBERED:
            self._reported.popitem(last=False)
        self.counts[resource.kind, reason] += 1
        log.error("%s %s is set aside: %s", resource.kind, subject.key, reason, exc_info=error)
        if self._events is not None:
            about = event_writer.reference(resource, subject.namespace, subject.name, subject.uid)
            note = f"Boathouse cannot represent this {resource.kind} and sets it aside ({reason}): {describe(error)}"
            self._events.publish(about, type_="Warning", reason=EVENT_REASON, action="SettingAside", note=note)


def describe(error: Exception) -> str:
    """Return a readable text of an error, of limited length."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return text if len(text) <= _MESSAGE_LENGTH else f"{text[:_MESSAGE_LENGTH]}..."
