"""Liveness and readiness from the progress of the process: watches receive messages, and loops complete rounds.

A response of the health endpoint alone would prove neither.
"""

import time
from collections.abc import Callable

Probe = Callable[[], str | None]
"""Returns the problem, or None."""


class Health:
    """Probes of all parts."""

    def __init__(self) -> None:
        self._liveness: dict[str, Probe] = {}
        self._readiness: dict[str, Probe] = {}

    def add_liveness(self, name: str, probe: Probe) -> None:
        """Add a liveness probe: the process is restarted while it returns a problem."""
        self._liveness[name] = probe

    def add_readiness(self, name: str, probe: Probe) -> None:
        """Add a readiness probe: the process is not ready while it returns a problem."""
        self._readiness[name] = probe

    def liveness_problems(self) -> dict[str, str]:
        """Return problems of liveness, by probe."""
        return _problems(self._liveness)

    def readiness_problems(self) -> dict[str, str]:
        """Return problems of readiness, by probe, including those of liveness."""
        return _problems(self._liveness) | _problems(self._readiness)


def _problems(probes: dict[str, Probe]) -> dict[str, str]:
    return {name: problem for name, probe in probes.items() if (problem := probe()) is not None}


class Heartbeat:
    """Probe for a loop that fails if the loop has not completed a round for too long.

    Args:
        limit_s: Maximum time without a round.
        clock: Returns monotonic seconds.
    """

    def __init__(self, *, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
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
