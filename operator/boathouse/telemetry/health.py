"""Liveness and readiness from the progress of the process: watches receive messages, loops complete rounds."""

import time
from collections.abc import Callable, Mapping

Probe = Callable[[], str | None]


class Health:
    """Probes by name: the process is restarted while one of liveness fails, and not ready while any fails."""

    def __init__(self) -> None:
        self.liveness: dict[str, Probe] = {}
        self.readiness: dict[str, Probe] = {}


def problems(*probes: Mapping[str, Probe]) -> dict[str, str]:
    """Return the problems that probes return, by name."""
    called = ((name, probe()) for group in probes for name, probe in group.items())
    return {name: problem for name, problem in called if problem is not None}


class Heartbeat:
    """Probe for a loop that fails if the loop has not completed a round for too long."""

    def __init__(self, *, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s, self._clock = limit_s, clock
        self._last_s: float | None = None

    def beat(self) -> None:
        """Mark a completed round."""
        self._last_s = self._clock()

    def __call__(self) -> str | None:
        """Return the time since the last round as a problem, if it exceeds the limit."""
        if self._last_s is None:  # not started: a standby's loops do not run
            return None
        silence_s = self._clock() - self._last_s
        return f"no progress for {silence_s:.0f} s (limit {self._limit_s:.0f} s)" if silence_s > self._limit_s else None
