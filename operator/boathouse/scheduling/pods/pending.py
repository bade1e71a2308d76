"""What the condition and the events of a pending pod say."""

import asyncio
import dataclasses
import math


@dataclasses.dataclass(frozen=True, slots=True)
class PendingReason:
    """Reason and message why a pod is pending."""

    reason: str
    message: str


@dataclasses.dataclass(slots=True, eq=False)
class PendingReport:
    """Condition and events of a pending pod.

    Attributes:
        condition: The condition that was written or is queued; None if unknown.
        condition_at_s: Time of that write.
        events_at_s: Time of the last event by reason.
        held_back: The delayed condition, or None.
        written: Set when the write in flight is done; None without one.
    """

    condition: PendingReason | None
    condition_at_s: float = -math.inf
    events_at_s: dict[str, float] = dataclasses.field(default_factory=dict)
    held_back: PendingReason | None = None
    written: asyncio.Event | None = None
