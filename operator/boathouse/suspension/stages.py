"""Stages of a task's suspension, derived from its pod alone: a crash between two writes leaves one of them. Pure.

With `o` the original CPU of the record, and (request, limit) the CPU of the task's container by the spec:

    NONE --record--> NONE --shrink--> SHRINKING --kubelet--> SUSPENDED --continue--> CONTINUING --grow--> GROWING
     ^                                                                                                      |
     +------------------------------------------------- kubelet --------------------------------------------+
"""

import dataclasses
import enum

from boathouse.suspension.record import SuspensionRecord
from boathouse_task.contract import SUSPENDED_LIMIT_MILLI, SUSPENDED_REQUEST_MILLI


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class CpuSize:
    """CPU request and limit of a task's container, in millicores.

    Attributes:
        request_milli: Its request.
        limit_milli: Its limit; 0 for none.
    """

    request_milli: int
    limit_milli: int


SUSPENDED_SIZE = CpuSize(SUSPENDED_REQUEST_MILLI, SUSPENDED_LIMIT_MILLI)


class Stage(enum.Enum):
    """How far the last suspension of a task is."""

    NONE = "none"
    """The task has its original CPU, or was never suspended."""
    SHRINKING = "shrinking"
    """The spec has the CPU of a suspended task, and the node has not taken the rest: nothing is free yet."""
    SUSPENDED = "suspended"
    """The CPU is lent."""
    CONTINUING = "continuing"
    """The limit is the original one again, and the task runs; its node is to give it its request again."""
    GROWING = "growing"
    """The request is the original one again, and the node has not given it."""
    ORPHAN = "orphan"
    """The spec has the CPU of a suspended task, and no readable record says what it had."""
    FOREIGN = "foreign"
    """Another writer resized the pod: the record is void."""

    @property
    def is_shrunk(self) -> bool:
        """Whether the spec has the CPU of a suspended task, by the operator's doing."""
        return self in {Stage.SHRINKING, Stage.SUSPENDED}

    @property
    def is_open(self) -> bool:
        """Whether a suspension in this stage needs more writes."""
        return self not in {Stage.NONE, Stage.FOREIGN}


def stage_of(size: CpuSize, record: SuspensionRecord | None, *, is_resizing: bool) -> Stage:
    """Return the stage of a task's suspension.

    Args:
        size: The CPU of its container by the spec.
        record: The record of its last suspension.
        is_resizing: Whether its node has not given it the size that its spec requests.
    """
    if record is None:
        return Stage.ORPHAN if size == SUSPENDED_SIZE else Stage.NONE
    original = CpuSize(record.cpu_request_milli, record.cpu_limit_milli)
    if size == original:
        return Stage.GROWING if is_resizing else Stage.NONE
    if size == SUSPENDED_SIZE:
        return Stage.SHRINKING if is_resizing else Stage.SUSPENDED
    if size == CpuSize(SUSPENDED_REQUEST_MILLI, original.limit_milli):
        return Stage.CONTINUING
    return Stage.FOREIGN
