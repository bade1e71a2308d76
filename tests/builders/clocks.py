"""A clock that only the test moves."""

from __future__ import annotations


class Clock:
    """Returns `now_s`."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
