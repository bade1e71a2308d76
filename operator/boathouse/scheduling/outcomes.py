"""What came of a write: a closed union, so that the scheduler's bookkeeping is one place and the I/O another."""

import dataclasses
from typing import TypeAlias

from boathouse.cluster import errors, wire

QUOTA_BACKOFF_S = 30.0
REFUSED_BACKOFF_S = 10.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The pod exists, and is on the node that was decided (or, made ahead, on none)."""

    pod: wire.PodView | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotDone:
    """It is known that nothing was done; try again later.

    Attributes:
        reason: CamelCase, for conditions.
        message: For people.
        at_least_s: How long the server, or the kind of refusal, asks to wait.
        excludes_node: Whether pods of the class are to be kept from the node for a while.
    """

    reason: str
    message: str
    at_least_s: float = 0.0
    excludes_node: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """The pod is not as decided: on another node, on none, or ended. This is the truth."""

    pod: wire.PodView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """The pod to be bound is gone, going, or another one of the same name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NameTaken:
    """A pod of the task's name belongs to somebody else."""

    pod: wire.PodView


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """We do not lead any more: by our own clock, or by the API server's word."""

    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Nothing was sent: what was decided makes no sense any more."""


Outcome: TypeAlias = Done | NotDone | Elsewhere | Vanished | NameTaken | Fenced | Skipped


def may_be_the_fence(error: errors.ApiError) -> bool:
    """Say whether an answer may be that of the admission policy that refuses old epochs: the Lease knows, not the text.

    Args:
        error: An answer after which nothing was done.
    """
    return isinstance(error, errors.Forbidden | errors.Invalid)


def refusal(error: errors.ApiError) -> NotDone:
    """Return what a definite no of the API server means for the pod, written by a process that leads.

    Args:
        error: An answer after which nothing was done.
    """
    if isinstance(error, errors.TooManyRequests):
        return NotDone(reason="TooManyRequests", message=error.message, at_least_s=error.retry_after_s or 0.0)
    if isinstance(error, errors.Forbidden) and "exceeded quota" in error.message:
        return NotDone(reason="QuotaExceeded", message=error.message, at_least_s=QUOTA_BACKOFF_S)
    return NotDone(reason="PodRefused", message=error.message, at_least_s=REFUSED_BACKOFF_S)


def code(error: errors.ClusterError) -> str:
    """Return an error's code for metrics."""
    return str(error.status) if isinstance(error, errors.ApiError) else "connection"
