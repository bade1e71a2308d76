"""Define what a kind provides to the frame, and the desired state that the frame carries out."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from boathouse.services.frame.kind import Body, KindDefinition, ObjectUid, Refusal
from boathouse.services.frame.status_writer import Memory, StatusFormat
from boathouse.services.frame.writes import Writes

Effect = Callable[[Writes], Awaitable[float | None]]
"""Carries out a part of a desired state; returns in how many seconds the object is due again at the latest, or None."""


class ObjectState(Protocol):
    """Fields of an object's state that the frame reads. States compare by value."""

    @property
    def phase(self) -> str:
        """The phase of the status."""

    @property
    def reason(self) -> str:
        """The reason of the phase, a CamelCase token or empty."""

    @property
    def completion_s(self) -> float | None:
        """When the object finished, in epoch seconds."""


O = TypeVar("O")  # noqa: E741 - the object
S = TypeVar("S", bound=ObjectState)
V = TypeVar("V")
M = TypeVar("M", bound=Memory[Any])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Creation time, time to live after its end (None: unlimited) and finalizer for a clean-up of an object."""

    created_s: float
    ttl_s: float | None
    wants_finalizer: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desired(Generic[S]):
    """The desired state of an object. The frame carries it out in the order of the attributes.

    `delete` has names and UIDs of pods, which the status counts by then. An object that `holds_deletion` is cleaned up,
    and must not be deleted; the status of one that `is_at_rest` has all that must be remembered.
    """

    before_status: Sequence[Effect] = ()
    state: S
    after_status: Sequence[Effect] = ()
    delete: Sequence[tuple[str, str]] = ()
    after: Sequence[Effect] = ()
    recheck_at_s: float | None = None
    holds_deletion: bool = False
    is_at_rest: bool = False


class Kind(Protocol[O, S, V, M]):
    """A kind of custom resource: `O` is its object, `S` a state, `V` an observation, `M` the memory of an object."""

    @property
    def definition(self) -> KindDefinition:
        """The constants of the kind."""

    @property
    def status_format(self) -> StatusFormat[S]:
        """Converts a state into a status."""

    def parse(self, body: Body) -> O | Refusal:
        """Return the object, or why it is refused."""

    def life(self, obj: O) -> Life:
        """Return the object's creation time, time to live and finalizer."""

    def load(self, status: Mapping[str, Any], obj: O | None) -> S:
        """Return the state in a status; `obj` is None for an invalid object. Must accept any status."""

    def remember(self, uid: ObjectUid, state: S, written: Mapping[str, Any]) -> M:
        """Return the memory of an object whose status was read."""

    def refuse(self, state: S, refusal: Refusal, generation: int, now_s: float) -> S:
        """Return the state of a refused object."""

    async def observe(self, obj: O, memory: M) -> V:
        """Collect the input of the plan. May read the API and writes nothing."""

    def plan(self, observation: V, memory: M) -> Desired[S]:
        """Return the desired state of an object from its observation."""

    def note(self, obj: O, state: S) -> str:
        """Return the text of the event about the phase."""

    def restored(self, uid: ObjectUid) -> None:
        """Drop data that was read for an object before etcd was restored from a backup."""

    def forget(self, uid: ObjectUid, namespace: str) -> None:
        """Drop all data about a deleted object, and withdraw its pending tasks."""
