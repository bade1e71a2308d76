"""Liveness and readiness by what the process gets done: watches that hear from the server, a loop that comes round.

An HTTP server that answers proves only that it answers.
"""

import time
from collections.abc import Callable

Probe = Callable[[], str | None]
"""Returns what is wrong, or None."""


class Health:
    """The probes of all parts."""

    def __init__(self) -> None:
        self._liveness: dict[str, Probe] = {}
        self._readiness: dict[str, Probe] = {}

    def add_liveness(self, name: str, probe: Probe) -> None:
        """Let the process be restarted while `probe` names a problem."""
        self._liveness[name] = probe

    def add_readiness(self, name: str, probe: Probe) -> None:
        """Keep traffic away while `probe` names a problem."""
        self._readiness[name] = probe

    def liveness_problems(self) -> dict[str, str]:
        """Return what is wrong, by probe."""
        return _problems(self._liveness)

    def readiness_problems(self) -> dict[str, str]:
        """Return what is not ready yet, by probe; what is not alive is not ready either."""
        return _problems(self._liveness) | _problems(self._readiness)


def _problems(probes: dict[str, Probe]) -> dict[str, str]:
    return {name: problem for name, probe in probes.items() if (problem := probe()) is not None}


class Heartbeat:
    """A probe for a loop: it fails when the loop has not come round for too long.

    Args:
        limit_s: The longest silence that is healthy.
        clock: Seconds that only grow.
    """

    def __init__(self, *, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._last_s: float | None = None

    def beat(self) -> None:
        """Say that the loop came round."""
        self._last_s = self._clock()

    def __call__(self) -> str | None:
        """Return how long the loop has been silent, if that is too long."""
        if self._last_s is None:  # not started: a standby replica's loops are allowed to rest
            return None
        silence_s = self._clock() - self._last_s
        return f"no progress for {silence_s:.0f} s (limit {self._limit_s:.0f} s)" if silence_s > self._limit_s else None
