"""The state of a DriverApp and its status."""

import dataclasses

from boathouse.resources import base, statuses

TERMINAL = frozenset({"Succeeded", "Failed"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class AppState:
    """The state of an app.

    Attributes:
        starts: How often the driver was submitted under a new name: after each suspension.
        executors: How many executors run.
    """

    phase: str = "Pending"
    reason: str = ""
    observed_generation: int = 0
    starts: int = 1
    executors: int = 0
    conditions: tuple[base.Condition, ...] = ()
    completion_s: float | None = None


def to_status(state):
    return {
        "phase": state.phase,
        "reason": state.reason,
        "observedGeneration": state.observed_generation,
        "starts": state.starts,
        "executors": state.executors,
        "conditions": [condition.model_dump(by_alias=True, exclude_none=True) for condition in state.conditions],
        "completionTime": statuses.rfc3339(state.completion_s),
    }


def without_free_parts(state):
    return state


def from_status(status):
    return AppState(
        phase=status.get("phase", "Pending"),
        reason=status.get("reason", ""),
        observed_generation=status.get("observedGeneration", 0),
        starts=status.get("starts", 1),
        executors=status.get("executors", 0),
        conditions=tuple(base.Condition.model_validate(condition) for condition in status.get("conditions") or ()),
        completion_s=statuses.epoch(status.get("completionTime")),
    )
