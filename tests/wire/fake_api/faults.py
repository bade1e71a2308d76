"""What the fake API server does wrong on order."""

from __future__ import annotations

import dataclasses
import fnmatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How a call goes wrong.

    Attributes:
        status: The HTTP status of the answer; ignored with `reset`.
        reason: `Status.reason`.
        after_commit: Whether the call was done all the same.
        retry_after_s: The Retry-After header.
        reset: Whether the connection is broken off instead of an answer.
        delay_s: How long the answer is held back.
        released: Until when the call is held back.
    """

    status: int = 0
    reason: str = ""
    after_commit: bool = False
    retry_after_s: float | None = None
    reset: bool = False
    delay_s: float = 0.0
    released: asyncio.Event | None = None


class Faults:
    """Faults waiting for the calls they belong to, by call name or pattern."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, Fault]] = []

    def add(self, call: str, fault: Fault, times: int) -> None:
        """Let the next `times` calls of that name (a pattern as `* pods`) go wrong."""
        self._waiting += [(call, fault)] * times

    def take(self, call: str) -> Fault | None:
        """Return the fault for this call and strike it out."""
        for position, (pattern, fault) in enumerate(self._waiting):
            if fnmatch.fnmatchcase(call, pattern):
                del self._waiting[position]
                return fault
        return None

    def clear(self) -> None:
        """From here on all goes well."""
        self._waiting.clear()
