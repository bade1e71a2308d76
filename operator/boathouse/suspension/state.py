"""What the operator knows of one task's suspension: the only place where that is kept."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from boathouse.suspension.stages import Stage
from boathouse.suspension.timeouts import BACKOFF_S

if TYPE_CHECKING:
    from boathouse.suspension.reasons import Reason
    from boathouse.suspension.record import SuspensionRecord
    from boathouse_policies import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A suspension that is being carried out.

    Attributes:
        until_s: When the task is resumed at the latest.
        reason: Why it is suspended.
        by: Who decided it: a profile's name, or `record.USER`.
        decision: The decision of a policy; None for a user's.
    """

    until_s: float
    reason: Reason
    by: str
    decision: model.Suspend | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Suspension:
    """The suspension of one pod, from its order until the pod has its CPU again. Its row keeps it.

    Attributes:
        stage: The stage that the pod was shown in last.
        since_s: Since when.
        record: The last readable record of it.
        order: The order, while that is carried out.
        ends: Why it is to end before its time; None if it is not.
        charged: What the ledger charges at least for the task, because its suspension ends; None for what is shown.
        is_actuated: Whether the time that its CPU took to be free was observed.
        failures: Refused writes in a row.
        retry_s: When to write again; infinity for never.
    """

    stage: Stage = Stage.NONE
    since_s: float = 0.0
    record: SuspensionRecord | None = None
    order: Order | None = None
    ends: Reason | None = None
    charged: model.Resources | None = None
    is_actuated: bool = False
    failures: int = 0
    retry_s: float = -math.inf

    def show(self, stage: Stage, record: SuspensionRecord | None, now_s: float) -> None:
        """Take over what is shown of the pod."""
        self.record = record or self.record
        if stage is not self.stage:
            self.stage, self.since_s, self.failures = stage, now_s, 0

    def refused(self, now_s: float) -> int:
        """Note that a write was refused: it is repeated later. Return how often in a row."""
        self.retry_s = now_s + BACKOFF_S[min(self.failures, len(BACKOFF_S) - 1)]
        self.failures += 1
        return self.failures

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to do: the pod has its CPU, or that of another writer."""
        return self.order is None and not self.stage.is_open
