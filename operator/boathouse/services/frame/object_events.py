"""Publish the events that objects of all kinds have."""

from typing import Final

from boathouse.cluster import errors
from boathouse.cluster import events as event_writer
from boathouse.resources.names import Reason
from boathouse.services.frame.kind import KindDefinition, ObjectUid
from boathouse.telemetry import logs

_log = logs.get(__name__)

_LONGEST_NOTE: Final = 1000


class ObjectEvents:
    """Events about objects of one kind."""

    def __init__(self, kind: KindDefinition, events: event_writer.EventWriter) -> None:
        self._kind, self._events = kind, events

    def publish(
        self, key: str, uid: ObjectUid, reason: str, note: str, *, action: str = "Reconciling", is_warning: bool = True
    ) -> None:
        """Publish an event about an object."""
        namespace, _, name = key.partition("/")
        self._events.publish(
            event_writer.reference(self._kind.resource, namespace, name, uid),
            type_="Warning" if is_warning else "Normal",
            reason=reason,
            action=action,
            note=note[:_LONGEST_NOTE],
        )

    def not_cleaned_up(self, key: str, uid: ObjectUid, why: str) -> None:
        """Publish that the clean-up of an object failed."""
        _log.warning("an object is not cleaned up", kind=self._kind.resource.kind, object=key, why=why)
        self.publish(key, uid, str(Reason.CLEAN_UP_FAILED), why, action="CleaningUp")

    def refused_status(self, key: str, uid: ObjectUid, error: errors.Invalid) -> None:
        """Publish that the API server refused a status, which is then written without its free parts."""
        _log.warning("a status was refused and is written without its counters", object=key, error=error.message)
        note = f"the status is written without counters and last failures: {error.message}"
        self.publish(key, uid, "StatusRefused", note)
