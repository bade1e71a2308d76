"""Define the constants of a kind of custom resource for the frame."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NewType, ParamSpec, TypeVar

import pydantic

from boathouse.cluster import catalogue, wire
from boathouse.resources import names

Body = Mapping[str, Any]
ObjectUid = NewType("ObjectUid", str)
T = TypeVar("T")
P = ParamSpec("P")
PENDING_REQUEUE_S: Final = 2.0
"""The interval at which the status of a pending object is compared with the scheduler's diagnosis."""
OBSTACLE_REQUEUE_S: Final = 15.0
RESUBMIT_S: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KindDefinition:
    """The constants of a kind. `noun` is its name in messages.

    The phase, the conditions and `urgent_fields` of a status are written at once. The event of a phase has the phase as
    its reason, or what `phase_events` says. The operator reads only `annotations` of the objects.
    """

    resource: catalogue.Resource[wire.Manifest]
    noun: str
    phases: Sequence[str]
    terminal_phases: frozenset[str]
    urgent_fields: tuple[str, ...] = ()
    phase_events: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: frozenset[str] = frozenset()

    def has_ended(self, body: Body) -> bool:
        """Return whether the object is in a terminal phase or deleted, so that only its clean-up remains."""
        return (body.get("status") or {}).get("phase") in self.terminal_phases or is_deleted(body)

    def has_finalizer(self, body: Body) -> bool:
        """Return whether the object has the finalizer of the clean-up."""
        return names.FINALIZER in (body["metadata"].get("finalizers") or ())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an object cannot run, for the condition `Admitted`."""

    reason: str
    message: str


def refusing(read: Callable[P, T | Refusal]) -> Callable[P, T | Refusal]:
    """Return a function that reads a custom resource and refuses it where `read` raises an error."""

    @functools.wraps(read)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        try:
            return read(*args, **kwargs)
        except pydantic.ValidationError as error:
            problems = (f"spec.{'.'.join(map(str, detail['loc'][1:]))}: {detail['msg']}" for detail in error.errors())
            return Refusal(reason=names.Reason.INVALID_SPEC, message="; ".join(problems))
        except (ValueError, ArithmeticError) as error:  # ArithmeticError: quantities with exponents of a dozen digits
            return Refusal(reason=names.Reason.INVALID_SPEC, message=str(error))

    return checked


def is_submission_due(last: tuple[T, float] | None, wanted: T, now_s: float, *, is_pending: bool = True) -> bool:
    """Return whether to submit tasks to the scheduler: they have changed, or are pending for long."""
    return last is None or last[0] != wanted or (is_pending and now_s >= last[1] + RESUBMIT_S)


def is_deleted(body: Body) -> bool:
    """Return whether the deletion of an object was requested."""
    return bool(body["metadata"].get("deletionTimestamp"))


def is_suspended(body: Body) -> bool:
    """Return whether the spec suspends an object; False without a spec."""
    return (body.get("spec") or {}).get("suspend") is True


def key_of(body: Body) -> str:
    """Return the key of an object, `namespace/name`."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def namespace_of(key: str) -> str:
    """Return the namespace of a key."""
    return key.partition("/")[0]


def revision(body: Body) -> int:
    """Return the resource version as a number: versions are numbers that grow (Kubernetes 1.35)."""
    return int(body["metadata"]["resourceVersion"])
