"""The API server's clock, as its responses tell it: times that others wrote are compared with this clock.

This machine's wall clock may be wrong, and may step.
"""

import datetime as dt
import email.utils
import math
import time
from collections.abc import Callable
from typing import Final

_RESOLUTION_S = 1.0
"""`Date` has whole seconds, rounded down."""
TOLERANCE_S: Final = 2.0
"""API servers whose clocks differ by no more count as one clock."""


class ServerTime:
    """Estimates the API server's clock as an offset to the monotonic clock, so it advances without steps.

    Each response bounds the offset: its `Date` was written between the request and the response. The estimate moves
    only as far as the bounds require. Bounds that contradict the earlier ones by up to `TOLERANCE_S` are those of
    another API server, and are ignored. Others replace the earlier ones: a clock was corrected, and the estimate
    follows it, also back. Before the first response it is the wall clock at the start.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self.monotonic = monotonic
        self._offset_s = wall() - monotonic()
        self._least_s, self._most_s, self._latest_s = -math.inf, math.inf, -math.inf

    def now_s(self) -> float:
        """Return seconds since the epoch."""
        self._latest_s = max(self._latest_s, self.monotonic() + self._offset_s)
        return self._latest_s

    def now(self) -> dt.datetime:
        """Return the time in UTC."""
        return dt.datetime.fromtimestamp(self.now_s(), dt.UTC)

    def steady(self) -> Callable[[], float]:
        """Return a clock of seconds since the epoch that keeps the present estimate: for durations in this process."""
        offset_s = self._offset_s
        return lambda: self.monotonic() + offset_s

    def observe(self, date: str, *, sent_s: float, received_s: float) -> None:
        """Take the `Date` of a response to a request, with the monotonic times of both; a malformed one is ignored."""
        try:
            date_s = email.utils.parsedate_to_datetime(date).timestamp()
        except (ValueError, OverflowError):
            return
        least_s, most_s = date_s - received_s, date_s + _RESOLUTION_S - sent_s
        gap_s = max(least_s - self._most_s, self._least_s - most_s)
        if 0 < gap_s <= TOLERANCE_S:
            return
        if gap_s <= 0:
            least_s, most_s = max(least_s, self._least_s), min(most_s, self._most_s)
        self._least_s, self._most_s = least_s, most_s
        before_s, self._offset_s = self._offset_s, min(max(self._offset_s, least_s), most_s)
        if self._offset_s < before_s - TOLERANCE_S:
            self._latest_s = -math.inf


SERVER_TIME = ServerTime()
"""The clock of this process. The transport keeps it current."""
