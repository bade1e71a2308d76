"""The record of a task's last suspension, an annotation of its pod that is written before the pod shrinks. Pure."""

import datetime as dt

import msgspec

from boathouse_task import contract

USER = "user"
"""Who decided a suspension that the author of a job asked for."""
LONGEST_WHY = 160
_LONGEST = 512
_LARGEST_MILLI = 10**9
_LATEST_S = dt.datetime(9999, 1, 1, tzinfo=dt.UTC).timestamp()


class SuspensionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One suspension of a task.

    Attributes:
        cpu_request_milli: The CPU request that its container had before.
        cpu_limit_milli: The CPU limit that its container had before; 0 for none.
        since_s: When it acknowledged the order, in epoch seconds.
        until_s: When it is resumed at the latest, in epoch seconds.
        reason: Why, in CamelCase.
        by: Who decided it: a policy's name, or `user`.
        order: Name of the order.
        why: What a policy said of its decision, cut.
    """

    cpu_request_milli: int
    cpu_limit_milli: int
    since_s: float
    until_s: float
    reason: str
    by: str
    order: str
    why: str = ""

    def text(self) -> str:
        """Return the annotation's value."""
        return msgspec.json.encode(self).decode()


def parse(text: str) -> SuspensionRecord | None:
    """Return the record in an annotation's value; None if it is none that the operator could have written."""
    if len(text) > _LONGEST:
        return None
    try:
        found = msgspec.json.decode(text, type=SuspensionRecord)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    sizes_fit = 0 < found.cpu_request_milli <= _LARGEST_MILLI and 0 <= found.cpu_limit_milli <= _LARGEST_MILLI
    suspended = contract.SUSPENDED_REQUEST_MILLI, contract.SUSPENDED_LIMIT_MILLI
    sizes_fit &= (found.cpu_request_milli, found.cpu_limit_milli) != suspended
    return found if sizes_fit and 0 <= found.since_s <= found.until_s <= _LATEST_S else None
