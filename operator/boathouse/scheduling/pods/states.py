"""States of a pod in the scheduler, every transition between them, and what is said of one that is pending.

    submitted (no pod)            shown without a node
          |                                |
          v        accepted ahead          v
       PLANNED --> CREATING ----------> PENDING <--+
          ^         |    |                 |       | returned
          +---------+    | accepted        v       |
           refused       |              BINDING ---+
                         v                 |
                       BOUND <-------------+ accepted
                         |
     - - - - - - - - - - |- - - - - - - - - - - - - - - - - - - - - shown on its node
                         v
                     CONFIRMED <---------> RESIZING
                               its node gives it another size

       either of both ---------> ENDING    its deletion has begun
     - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
       any state --------------> GONE      it ended or was deleted

A watch event may skip states: it leads from any state to PENDING, to a state on a node, or to GONE. A GONE row is the
tombstone of a task's name.

The ledger counts a pod as assumed in CREATING (unless it is created without a node), BINDING and BOUND, and as
confirmed in the three states on a node. A pod that is RESIZING counts with the larger of both sizes, and one that is
ENDING counts until it has ended. That a task is suspended is no state of its pod: see `boathouse.suspension`.
"""

import asyncio
import dataclasses
import enum
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias


@dataclasses.dataclass(frozen=True, slots=True)
class PendingReason:
    """Reason and message why a pod is pending."""

    reason: str
    message: str


@dataclasses.dataclass(slots=True, eq=False)
class PendingReport:
    """Condition and events of a pending pod."""

    condition: PendingReason | None  # the condition that was written or is queued; None if unknown
    condition_at_s: float = -math.inf
    events_at_s: dict[str, float] = dataclasses.field(default_factory=dict)
    delayed: PendingReason | None = None
    written: asyncio.Event | None = None


class PodState(enum.StrEnum):
    """What the scheduler knows of a pod."""

    PLANNED = "planned"  # its owner submitted it; no pod and no write
    CREATING = "creating"  # a create request is queued or in flight
    PENDING = "pending"  # the pod exists without a node
    BINDING = "binding"  # a bind request is queued, in flight, or awaits volumes
    BOUND = "bound"  # the API server accepted the placement; no watch shows it yet
    CONFIRMED = "confirmed"  # it is on its node
    RESIZING = "resizing"  # on its node, which has not given it the size that its spec requests
    ENDING = "ending"  # on its node, and its deletion has begun
    GONE = "gone"  # it ended or was deleted: it holds nothing


class Trigger(enum.StrEnum):
    """What changes a pod's state."""

    SUBMITTED = "submitted"
    DECIDED = "decided"
    DECIDED_AHEAD = "decided ahead"  # to be created without a node
    ACCEPTED = "accepted"
    ACCEPTED_AHEAD = "accepted ahead"
    REFUSED = "refused"  # there is no pod: nothing was written, or the node is gone
    RETURNED = "returned"  # there is a pod without a node: nothing was written, or the node is gone
    SHOWN_PENDING = "shown pending"
    SHOWN_PLACED = "shown placed"
    SHOWN_RESIZING = "shown resizing"
    SHOWN_ENDING = "shown ending"
    ENDED = "ended"  # it is terminal, deleted, or a read finds no pod


class LedgerAction(enum.Enum):
    """What a transition does to the ledger."""

    KEEP = "keep"
    ASSUME = "assume"
    OBSERVE = "observe"
    FREE = "free"


Origin: TypeAlias = PodState | None  # a state, or None for a pod without a row

Transition: TypeAlias = tuple[PodState, LedgerAction]  # the next state, and what happens in the ledger


class ImpossibleTransition(Exception):  # noqa: N818 - a fault of the caller, named as what happened
    """A trigger that cannot occur in a state."""


def after(state: Origin, trigger: Trigger) -> Transition:
    """Return the transition of a trigger. Raises ImpossibleTransition if the trigger cannot occur in this state."""
    if (transition := TRANSITIONS.get((state, trigger))) is None:
        origin = "without a row" if state is None else state.value
        raise ImpossibleTransition(f"a pod {origin} cannot become {trigger.value}: this is a fault of the scheduler")
    return transition


UNDECIDED = frozenset({PodState.PLANNED, PodState.PENDING})
WITHOUT_POD = frozenset({PodState.PLANNED, PodState.GONE})
WITH_OPERATION = frozenset({PodState.CREATING, PodState.BINDING})
ASSUMED = (PodState.CREATING, PodState.BINDING, PodState.BOUND)
ON_NODE = frozenset({PodState.CONFIRMED, PodState.RESIZING, PodState.ENDING})
RUNNING = ON_NODE - {PodState.ENDING}
_UNWRITTEN = (None, PodState.PLANNED, PodState.PENDING, PodState.GONE)

_RULES: tuple[tuple[Trigger, tuple[Origin, ...], Origin, LedgerAction], ...] = (
    # trigger, states that it may occur in, next state (None: unchanged), ledger
    (Trigger.SUBMITTED, (None,), PodState.PLANNED, LedgerAction.KEEP),
    (Trigger.DECIDED, (PodState.PLANNED,), PodState.CREATING, LedgerAction.ASSUME),
    (Trigger.DECIDED, (PodState.PENDING,), PodState.BINDING, LedgerAction.ASSUME),
    (Trigger.DECIDED_AHEAD, (PodState.PLANNED,), PodState.CREATING, LedgerAction.KEEP),
    (Trigger.ACCEPTED, (PodState.CREATING, PodState.BINDING), PodState.BOUND, LedgerAction.KEEP),
    (Trigger.ACCEPTED_AHEAD, (PodState.CREATING,), PodState.PENDING, LedgerAction.KEEP),
    (Trigger.REFUSED, (PodState.CREATING, PodState.BOUND), PodState.PLANNED, LedgerAction.FREE),
    (Trigger.RETURNED, ASSUMED, PodState.PENDING, LedgerAction.FREE),
    (Trigger.SHOWN_PENDING, _UNWRITTEN, PodState.PENDING, LedgerAction.KEEP),
    (Trigger.SHOWN_PENDING, ASSUMED, None, LedgerAction.KEEP),  # the watch is behind
    (Trigger.SHOWN_PENDING, tuple(ON_NODE), PodState.PENDING, LedgerAction.FREE),  # etcd was restored
    (Trigger.SHOWN_PLACED, (None, *PodState), PodState.CONFIRMED, LedgerAction.OBSERVE),
    (Trigger.SHOWN_RESIZING, (None, *PodState), PodState.RESIZING, LedgerAction.OBSERVE),
    (Trigger.SHOWN_ENDING, (None, *PodState), PodState.ENDING, LedgerAction.OBSERVE),
    (Trigger.ENDED, tuple(PodState), PodState.GONE, LedgerAction.FREE),
)

TRANSITIONS: Mapping[tuple[Origin, Trigger], Transition] = MappingProxyType(
    {
        (origin, trigger): (to or origin or PodState.PLANNED, ledger)
        for trigger, origins, to, ledger in _RULES
        for origin in origins
    }
)
"""Every possible pair of a state and a trigger. A pair that is absent is impossible."""
