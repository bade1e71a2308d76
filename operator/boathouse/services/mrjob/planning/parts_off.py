"""Plan what is said of a job for which a part of the profile is off, because its decisions did harm. Pure."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.resources import statuses
from boathouse.resources.names import ConditionType, Reason
from boathouse.services.mrjob.state import conditions
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_policies.profiles.guard import Off, Part

_NAMES: Final[Mapping[Part, str]] = {
    Part.MEMORY: "less memory than requested",
    Part.REFUSAL: "waiting for nodes with other neighbours",
    Part.SUSPENSION: "suspending reduces",
}


def described(state: JobState, off: Sequence[Off], now_s: float) -> JobState:
    """Return the state with the condition `PoliciesActive`, which a job has once a part has been off for it."""
    if state.finished or (not off and state.condition(ConditionType.POLICIES_ACTIVE) is None):
        return state
    known = conditions.table(state, now_s)
    reason, message = (Reason.HARMFUL, "; ".join(map(_told, off))) if off else (Reason.TRIED_AGAIN, "")
    known.set(ConditionType.POLICIES_ACTIVE, not off, reason, message)
    return dataclasses.replace(state, conditions=known.conditions)


def news(before: JobState, after: JobState) -> tuple[str, str] | None:
    """Return reason and note of the event about a part that was just switched off or on; None for no event."""
    last, now = (state.condition(ConditionType.POLICIES_ACTIVE) for state in (before, after))
    if now is None or (last is not None and (last.status, last.message) == (now.status, now.message)):
        return None
    return ("PolicyOff", now.message) if now.status == "False" else ("PolicyOn", "all policies decide again")


def _told(off: Off) -> str:
    why = "it did harm in most namespaces"
    if off.effect.decisions:
        why = (
            f"{off.effect.decisions} decisions for the program were to save {off.effect.predicted_s:.0f} s of job time "
            f"and saved {off.effect.realised_s:.0f} s"
        )
    return f"{_NAMES[off.part]} is off until {statuses.rfc3339(off.until_s)}: {why}"
