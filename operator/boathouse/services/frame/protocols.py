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
    """The state of an object, as far as the frame reads it. It is a value that compares by its parts."""

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
    """When an object was created, and what happens after its end.

    Attributes:
        ttl_s: How long it stays after it finished; None for ever.
        wants_finalizer: Whether it may not be deleted before it is cleaned up.
    """

    created_s: float
    ttl_s: float | None
    wants_finalizer: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Desired(Generic[S]):
    """The desired state of an object. The frame carries it out in the order of the attributes.

    Attributes:
        delete: Names and UIDs of pods; deleted only after the status that counts them is written.
        recheck_at_s: When the next reconcile is due even if nothing changes, in epoch seconds.
        holds_deletion: Whether the object must stay although it finished or is deleted: its clean-up is in progress.
    """

    before_status: Sequence[Effect] = ()
    state: S
    after_status: Sequence[Effect] = ()
    delete: Sequence[tuple[str, str]] = ()
    after: Sequence[Effect] = ()
    recheck_at_s: float | None = None
    holds_deletion: bool = False


class Kind(Protocol[O, S, V, M]):
    """A kind of custom resource: `O` is its object, `S` a state, `V` an observation, `M` the memory of an object.

    Attributes:
        status_format: Converts a state into a status.
    """

    @property
    def definition(self) -> KindDefinition:
        """The constants of the kind."""

    @property
    def status_format(self) -> StatusFormat[S]:
        """Converts a state into a status."""

    def parse(self, body: Body) -> O | Refusal:
        """Return the object, or why it cannot run."""

    def life(self, obj: O) -> Life:
        """Return when the object was created, and what happens after its end."""

    def load(self, status: Mapping[str, Any], obj: O | None) -> S:
        """Return the state that a status describes, of an invalid object if `obj` is None. Must tolerate any status."""

    def remember(self, uid: ObjectUid, state: S, written: Mapping[str, Any]) -> M:
        """Return the memory of an object whose status was read."""

    def refuse(self, state: S, refusal: Refusal, generation: int, now_s: float) -> S:
        """Return the state of an object that cannot run."""

    async def observe(self, obj: O, memory: M) -> V:
        """Collect everything that the plan depends on. May read the API and writes nothing."""

    def plan(self, seen: V, memory: M) -> Desired[S]:
        """Return the desired state."""

    def note(self, obj: O, state: S) -> str:
        """Return the text of the event about the phase."""

    def restored(self, uid: ObjectUid) -> None:
        """Drop what was read for an object before etcd was restored from a backup."""

    def forget(self, uid: ObjectUid, namespace: str) -> None:
        """Drop everything about an object that is gone, and withdraw its pending tasks."""
