"""A SparkApp's status, as the planner counts with it.

A state is all that survives when pods vanish: which attempt is the last, how those before it ended, and when the next
may start. Numbers of attempts are never used twice.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from boathouse.resources.sparkapp.status import MAX_ATTEMPTS_KEPT, SparkAppStatus
from boathouse.services.frame.status_codec import StatusCodec

TERMINAL: Final = frozenset({"Succeeded", "Failed"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AppState(SparkAppStatus):
    """An application's status."""

    @property
    def is_finished(self) -> bool:
        """Whether the application has ended, one way or the other."""
        return self.phase in TERMINAL

    @property
    def is_settled(self) -> bool:
        """Whether the last attempt has ended and is counted, or there was none."""
        return self.attempt == 0 or any(each.number == self.attempt for each in self.past_attempts)


_CODEC: Final = StatusCodec(AppState)


def from_status(status: Mapping[str, Any] | None) -> AppState:
    """Return the state that a status holds; what another version wrote and this one cannot read is left out."""
    state = _CODEC.read(status)
    last = max((state.attempt, *(each.number for each in state.past_attempts)))
    return dataclasses.replace(state, attempt=last)


def to_status(state: AppState) -> dict[str, Any]:
    """Return the status as JSON, every field present, so that a merge patch clears what is gone."""
    return _CODEC.write(dataclasses.replace(state, past_attempts=state.past_attempts[-MAX_ATTEMPTS_KEPT:]))


def without_free_parts(state: AppState) -> AppState:
    """Return the state without what only informs people and comes from drivers: the rest of a status is ours alone."""
    ended = tuple(dataclasses.replace(each, message="") for each in state.past_attempts)
    return dataclasses.replace(state, last_log="", past_attempts=ended, stages=None, tasks=None, progress_percent=None)
