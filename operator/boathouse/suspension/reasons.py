"""Why a suspension begins, is refused, or ends: the values of the metric's label and of the record's reason."""

from __future__ import annotations

import enum


class Reason(enum.StrEnum):
    """A reason, as users see it. The metric counts each under its own name."""

    # It begins
    WAITING_FOR_MAPS = "WaitingForMaps"
    BY_HAND = "ByHand"
    # It is refused, or repeated later: by the operator,
    SWITCHED_OFF = "SwitchedOff"
    NOT_SUPPORTED = "NotSupported"
    NOT_RUNNING = "NotRunning"
    NOT_YET = "NotYet"
    INFEASIBLE = "Infeasible"
    LIMIT_RANGE = "LimitRange"
    QUOTA = "Quota"
    TOO_MANY = "TooMany"
    IN_FLIGHT = "InFlight"
    RESUMING = "Resuming"
    NOTHING_TO_LEND = "NothingToLend"
    # by the task (the first three are `contract.SuspendRefusal`),
    PHASE_PASSED = "PhasePassed"
    BUSY = "Busy"
    NO_CGROUP = "NoCgroup"
    NOT_POLLING = "NotPolling"
    NOT_ACKNOWLEDGED = "NotAcknowledged"
    TASK_ENDED = "TaskEnded"
    # and by the course of its writes
    TOO_SLOW = "TooSlow"
    OUTDATED = "Outdated"
    # It ends
    TIME_OVER = "TimeOver"
    ADVISED = "Advised"
    WITHDRAWN = "Withdrawn"
    LAPSED = "Lapsed"
    PROFILE_CHANGED = "ProfileChanged"
    RECORD_LOST = "RecordLost"
    OTHER = "other"

    @classmethod
    def of(cls, text: str) -> Reason:
        """Return the reason of this name; `OTHER` for a name that is none, such as an API server's."""
        return cls._value2member_map_.get(text, cls.OTHER)  # type: ignore[return-value]
