"""An observer of a profile that records its events."""

from __future__ import annotations

from typing import Any

from boathouse_policies import framework


class Recorder(framework.Observer):
    """Records events in their order."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def observe(self, event: Any) -> None:
        self.events.append(event)

    def take(self) -> list[Any]:
        """Return the events since the last call."""
        events, self.events = self.events, []
        return events

    def of(self, kind: type) -> list[Any]:
        """Return the events of a type."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def kinds(self) -> list[str]:
        """Return the names of the types."""
        return event_kinds(self.events)


def event_kinds(events: list[Any]) -> list[str]:
    """Return the names of the types of events."""
    return [type(event).__name__ for event in events]
