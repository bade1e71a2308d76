"""Write the statuses of objects: phase and conditions at once, other changes at most once a second.

Messages of conditions are written less often. The message of a pending object says who holds the scarce resource, so it
changes each time a pod of the cluster starts or ends. If hundreds of objects are pending, their messages would be most
of all writes to the API server.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from boathouse import fair
from boathouse.cluster import errors
from boathouse.services.frame.kind import KindDefinition, ObjectUid, namespace_of
from boathouse.services.frame.status_codec import stripped
from boathouse.services.frame.writes import Writes

S = TypeVar("S")
STATUS_DISTANCE_S: Final = 1.0
MESSAGE_DISTANCE_S: Final = 30.0
"""Minimum time between two writes of messages alone. The first one after another change needs only the time above."""


class StatusFormat(Protocol[S]):
    """Converts the state of an object into its status."""

    def to_status(self, state: S, /) -> dict[str, Any]:
        """Return the status as JSON with all fields, so that a merge patch also clears removed values."""

    def without_free_parts(self, state: S, /) -> S:
        """Return the state without informational fields, in case the API server refuses them."""


@dataclasses.dataclass(slots=True)
class Memory(Generic[S]):
    """Data about an object that this process remembers and its status does not store. It can be derived again.

    `written` is the last status, without null, as the API server keeps it, at `written_s` by the writer's clock.
    Messages that changed may be written in `message_delay_s`; it is infinite if none did.
    """

    uid: ObjectUid
    state: S
    written: Mapping[str, Any]
    written_s: float = -math.inf
    was_message: bool = False
    message_delay_s: float = math.inf
    revision: int = 0


class StatusShare:
    """Limits the rate of each namespace's status writes. Objects that exceed the limit take turns.

    Half of a namespace's burst is reserved for urgent statuses, so that other objects' progress cannot delay a phase.
    """

    def __init__(self, rate_per_s: float, clock: Callable[[], float]) -> None:
        self._rate_per_s = rate_per_s
        self._buckets = fair.Buckets(rate_per_s=rate_per_s, burst=rate_per_s * fair.BURST_S, clock=clock)
        self._waiting: dict[str, set[str]] = {}

    @property
    def refused(self) -> int:
        """Return how often a status was delayed."""
        return self._buckets.refused

    def take(self, key: str, *, is_urgent: bool) -> float:
        """Take a token for a status write of an object; returns 0, or the delay in seconds."""
        namespace = namespace_of(key)
        leave = 0.0 if is_urgent else self._rate_per_s * fair.BURST_S / 2
        if self._buckets.take(namespace, leave=leave):
            self.forget(key)
            return 0.0
        waiting = self._waiting.setdefault(namespace, set())
        waiting.add(key)
        return self._buckets.wait_s(namespace, leave=leave) + (len(waiting) - 1) / self._rate_per_s

    def forget(self, key: str) -> None:
        """Remove an object that has no status to write."""
        namespace = namespace_of(key)
        waiting = self._waiting.get(namespace, set())
        waiting.discard(key)
        if not waiting:
            self._waiting.pop(namespace, None)


class StatusWriter(Generic[S]):
    """Writes the statuses of one kind; `on_refused` is called before one is written without its free parts."""

    def __init__(
        self,
        status_format: StatusFormat[S],
        writes: Writes,
        share: StatusShare,
        *,
        on_refused: Callable[[str, ObjectUid, errors.Invalid], None],
        clock: Callable[[], float],
    ) -> None:
        self._format, self._writes, self._share = status_format, writes, share
        self._on_refused, self._clock = on_refused, clock

    async def write(self, key: str, memory: Memory[S]) -> float | None:
        """Write the status if it changed; returns the delay in seconds if it, beside its messages, may not be yet."""
        wire, memory.message_delay_s = stripped(self._format.to_status(memory.state)), math.inf
        if wire == memory.written:
            return None
        urgent = _urgent(self._writes.kind, wire) != _urgent(self._writes.kind, memory.written)
        is_message = not urgent and _without_messages(wire) == _without_messages(memory.written)
        distance_s = MESSAGE_DISTANCE_S if is_message and memory.was_message else STATUS_DISTANCE_S
        wait_s = 0.0 if urgent else memory.written_s + distance_s - self._clock()
        if wait_s <= 0:
            wait_s = self._share.take(key, is_urgent=urgent)
        if wait_s > 0 and is_message:
            memory.message_delay_s = wait_s
            return None
        if wait_s > 0:
            return wait_s
        memory.state, memory.written = await self.patch(key, memory.uid, memory.state)
        memory.written_s, memory.was_message = self._clock(), is_message
        return None

    async def patch(self, key: str, uid: ObjectUid, state: S) -> tuple[S, Mapping[str, Any]]:
        """Write a status, without its free parts if it is refused; returns what was written."""
        body = self._writes.objects.get(key)
        if body is None or body["metadata"]["uid"] != uid:
            raise errors.Conflict(409, "Conflict", "the object was deleted or replaced during the reconcile")
        wire = self._format.to_status(state)
        try:
            await self._writes.status(body, wire)
        except errors.Invalid as error:
            bare = self._format.without_free_parts(state)
            if bare == state:
                raise
            self._on_refused(key, uid, error)
            state, wire = bare, self._format.to_status(bare)
            await self._writes.status(body, wire)
        return state, stripped(wire)


def _conditions(wire: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [condition for condition in wire.get("conditions") or () if isinstance(condition, Mapping)]


def _without_messages(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**wire, "conditions": [{**condition, "message": None} for condition in _conditions(wire)]}


def _urgent(kind: KindDefinition, wire: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parts of a status whose change is written at once: the phase, the conditions, the urgent fields."""
    parts = [tuple(map(condition.get, ("type", "status", "reason"))) for condition in _conditions(wire)]
    return (wire.get("phase"), *map(wire.get, kind.urgent_fields), parts)
