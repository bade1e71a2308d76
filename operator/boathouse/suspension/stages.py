"""A task's suspension as a value: its stages, its record, the reasons for it, and its time limits.

The stages are derived from the task's pod alone: a crash between two writes leaves one of them. With `o` the original
CPU of the record, and (request, limit) the CPU of the task's container by the spec:

    NONE --record--> NONE --shrink--> SHRINKING --kubelet--> SUSPENDED --continue--> CONTINUING --grow--> GROWING
     ^                                                                                                      |
     +------------------------------------------------- kubelet --------------------------------------------+

The time limits, and which of them follow from others:

    order ----ORDERED_WITHIN_S----> a poll takes it ----ACKNOWLEDGED_WITHIN_S----> the task has paused
                                                                                        |
        SHRUNK_WITHIN_S: the last request that shrinks its pod has ended <--------------+
        LAPSES_S: the task, whose CPU limit was not lowered, continues by itself <------+

The operator stops shrinking well before the task stops waiting for it: a pod that shrinks after its task continued
would run it with 10m of CPU until the reconciler sees that.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
from typing import TYPE_CHECKING

import msgspec

from boathouse_task import contract

if TYPE_CHECKING:
    from boathouse_policies import model


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


ORDERED_WITHIN_S = 5.0  # a task that does not poll within this time after an order to it does not get the order
_ON_THE_WAY_S = 1.0
ACKNOWLEDGED_WITHIN_S = contract.STOPS_WITHIN_S + contract.ACKNOWLEDGES_WITHIN_S + _ON_THE_WAY_S
"""Time from the poll to the acknowledgement: the task's threads stop, and it sends its answer."""
LAPSES_S = contract.SHRINKS_WITHIN_S  # a task whose CPU does not shrink so soon after its acknowledgement continues
SHRUNK_WITHIN_S = LAPSES_S - 4.0  # from the acknowledgement to the end of record and shrink; the kubelet has the rest
DEFERRED_S = 2.0  # how long a node may defer a growth before that is taken back, to keep no room from others
DEFERRED_RETRY_S = 30.0  # when a growth that its node deferred is tried again
SUBMITTED_S = 10.0  # how long the job of a task without a record may take to be submitted after the task was seen
BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # when a refused write is repeated, by refusals in a row
BY_HAND_EVERY_S = 0.5  # how often the tasks are looked for that their author suspends
BY_HAND_RETRY_S = 5.0  # when a task that could not be suspended for its author is asked again
LIMIT_RANGE_S = 600.0  # a namespace is left alone that refused to shrink a task: LimitRanges are not watched

USER = "user"  # who decided a suspension that the author of a job asked for
LONGEST_WHY = 160
_LONGEST = 512
_LARGEST_MILLI = 10**9
_LATEST_S = dt.datetime(9999, 1, 1, tzinfo=dt.UTC).timestamp()


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class CpuSize:
    """CPU request and limit of a task's container, in millicores; a limit of 0 is none."""

    request_milli: int
    limit_milli: int


SUSPENDED_SIZE = CpuSize(contract.SUSPENDED_REQUEST_MILLI, contract.SUSPENDED_LIMIT_MILLI)


class SuspensionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One suspension of a task."""

    cpu_request_milli: int  # the CPU request that its container had before
    cpu_limit_milli: int  # the CPU limit that its container had before; 0 for none
    since_s: float  # when it acknowledged the order, in epoch seconds
    until_s: float  # when it is resumed at the latest, in epoch seconds
    reason: str
    by: str  # who decided it: a policy's name, or `user`
    order: str
    why: str = ""  # what a policy said of its decision, cut

    @property
    def size(self) -> CpuSize:
        """Return the CPU that its container had before."""
        return CpuSize(self.cpu_request_milli, self.cpu_limit_milli)

    def text(self) -> str:
        """Return the annotation's value."""
        return msgspec.json.encode(self).decode()


def parse(text: str) -> SuspensionRecord | None:
    """Return the record in an annotation's value; None if it is none that the operator could have written."""
    if len(text) > _LONGEST:
        return None
    try:
        record = msgspec.json.decode(text, type=SuspensionRecord)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    sizes_fit = 0 < record.cpu_request_milli <= _LARGEST_MILLI and 0 <= record.cpu_limit_milli <= _LARGEST_MILLI
    sizes_fit &= record.size != SUSPENDED_SIZE
    return record if sizes_fit and 0 <= record.since_s <= record.until_s <= _LATEST_S else None


class Stage(enum.Enum):
    """How far the last suspension of a task is."""

    NONE = "none"  # the task has its original CPU, or was never suspended
    SHRINKING = "shrinking"  # the spec has the CPU of a suspended task, and the node has not: nothing is free yet
    SUSPENDED = "suspended"  # the CPU is lent
    CONTINUING = "continuing"  # the limit is the original one again; the node is to give the request again
    GROWING = "growing"  # the request is the original one again, and the node has not given it
    ORPHAN = "orphan"  # the spec has the CPU of a suspended task, and no readable record says what it had
    FOREIGN = "foreign"  # another writer resized the pod: the record is void

    @property
    def is_shrunk(self) -> bool:
        """Whether the spec has the CPU of a suspended task, by the operator's doing."""
        return self in {Stage.SHRINKING, Stage.SUSPENDED}

    @property
    def is_open(self) -> bool:
        """Whether a suspension in this stage needs more writes."""
        return self not in {Stage.NONE, Stage.FOREIGN}


def stage_of(size: CpuSize, record: SuspensionRecord | None, *, is_resizing: bool) -> Stage:
    """Return the stage of a suspension. `is_resizing` says that the node has not given the pod the size of its spec."""
    if record is None:
        return Stage.ORPHAN if size == SUSPENDED_SIZE else Stage.NONE
    if size == record.size:
        return Stage.GROWING if is_resizing else Stage.NONE
    if size == SUSPENDED_SIZE:
        return Stage.SHRINKING if is_resizing else Stage.SUSPENDED
    is_continuing = size == CpuSize(contract.SUSPENDED_REQUEST_MILLI, record.cpu_limit_milli)
    return Stage.CONTINUING if is_continuing else Stage.FOREIGN


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A suspension that is being carried out."""

    until_s: float
    reason: Reason
    by: str  # who decided it: a profile's name, or `stages.USER`
    decision: model.Suspend | None = None  # the decision of a policy; None for a user's


@dataclasses.dataclass(slots=True, eq=False)
class Suspension:
    """The suspension of one pod, from its order until the pod has its CPU again. Its row keeps it."""

    stage: Stage = Stage.NONE  # the stage that the pod was shown in last
    since_s: float = 0.0
    record: SuspensionRecord | None = None
    order: Order | None = None  # the order, while that is carried out
    ends: Reason | None = None  # why it is to end before its time; None if it is not
    # what the ledger charges at least for the task, because its suspension ends; None for what is shown
    charged: model.Resources | None = None
    is_actuated: bool = False  # whether the time that its CPU took to be free was observed
    failures: int = 0
    retry_s: float = -math.inf  # when to write again; infinity for never

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
    def has_begun(self) -> bool:
        """Whether its task is suspended, or about to be."""
        return self.order is not None or self.stage.is_shrunk

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left to do: the pod has its CPU, or that of another writer."""
        return self.order is None and not self.stage.is_open
