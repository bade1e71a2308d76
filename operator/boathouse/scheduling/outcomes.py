"""Outcomes of a write, as a closed union, which separates the I/O from the scheduler's state."""

import dataclasses
from typing import TypeAlias

from boathouse.cluster import errors, wire

QUOTA_BACKOFF_S = 30.0
REFUSED_BACKOFF_S = 10.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The pod exists on the decided node (or without a node, if decided so)."""

    pod: wire.PodView | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class NotDone:
    """The write was certainly not done; retry later."""

    reason: str
    message: str
    at_least_s: float = 0.0  # minimum delay of the retry, from the server or the kind of refusal
    excludes_node: bool = False  # whether to exclude the class from the node for some time
    is_of_class: bool = False  # whether it says nothing of pods of other classes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """The pod differs from the decision: it is on another node, on none, or ended. Has the actual pod."""

    pod: wire.PodView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """The pod to bind was deleted, is being deleted, or was replaced by another of the same name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """A pod with the task's name has another owner."""

    pod: wire.PodView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """This process is no longer the leader, by its own clock or by the Lease."""

    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """No request was sent, because the decision is stale."""


Outcome: TypeAlias = Done | NotDone | Elsewhere | Vanished | NameTaken | Fenced | Skipped


def may_be_the_fence(error: errors.ApiError) -> bool:
    """Return whether a rejection may come from the policy that rejects old epochs. Only the Lease can confirm it."""
    return isinstance(error, errors.Forbidden | errors.Invalid)


def refusal(error: errors.ApiError) -> NotDone:
    """Return the outcome of a write that the API server rejected, if this process is the leader."""
    if isinstance(error, errors.TooManyRequests):
        return NotDone(reason="TooManyRequests", message=error.message, at_least_s=error.retry_after_s or 0.0)
    if isinstance(error, errors.Forbidden) and "exceeded quota" in error.message:
        return NotDone(reason="QuotaExceeded", message=error.message, at_least_s=QUOTA_BACKOFF_S)
    return NotDone(reason="PodRefused", message=error.message, at_least_s=REFUSED_BACKOFF_S)


def code(error: errors.ClusterError) -> str:
    """Return an error's code for metrics."""
    return str(error.status) if isinstance(error, errors.ApiError) else "connection"
