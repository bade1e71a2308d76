"""Kill the process at a point that a test chooses: `VARIABLE=NAME[:N]` sends SIGKILL at its N-th hit.

Failpoints are off unless the variable is set. The code calls `hit(NAME)`; the name must be in `names`, which can be
printed. A variable with an unknown name is rejected at the start.
"""

import os
import signal
from collections.abc import Iterable, Mapping
from typing import Final

KILLED: Final = 128 + signal.SIGKILL


class Failpoints:
    """Failpoints of a program, before and after each of its writes; an environment variable arms one of them.

    In between, the receiver may have a write without the process's knowledge.
    """

    def __init__(self, variable: str, writes: Iterable[str]) -> None:
        self.names: Final = tuple(f"{moment}-{write}" for write in writes for moment in ("before", "after"))
        self._variable = variable
        self._armed: str | None = None
        self._remaining = 0

    def arm(self, environment: Mapping[str, str] | None = None) -> str | None:
        """Return the failpoint that the environment sets, for the log. Raises ValueError if it is unknown."""
        value = (os.environ if environment is None else environment).get(self._variable)
        if not value:
            self._armed = None
            return None
        name, _, count = value.partition(":")
        if name not in self.names:
            raise ValueError(f'{self._variable} names "{name}"; the failpoints are: {", ".join(self.names)}')
        if count and (not count.isdecimal() or int(count) < 1):
            raise ValueError(f'{self._variable}: "{count}" after the colon is not a number from 1')
        self._armed, self._remaining = name, int(count or 1)
        return value

    def hit(self, name: str) -> None:
        """Kill the process if this failpoint is armed and has reached its count."""
        if name != self._armed:
            return
        self._remaining -= 1
        if self._remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)
            os._exit(KILLED)  # the kernel does not deliver SIGKILL from process 1 to itself; this also runs no clean-up
