"""Places where a test may kill the process: `BOATHOUSE_FAILPOINT=NAME[:N]` sends SIGKILL at the N-th passage.

Off unless the variable is set. A place is passed by `hit(NAME)`; its name must be in `NAMES`, so that a list can be
printed and a misspelt variable is refused at the start.
"""

import os
import signal
from collections.abc import Mapping

VARIABLE = "BOATHOUSE_FAILPOINT"

WRITES = (
    "leader.acquired",
    "leader.label",
    "progress.ca",
    "plan.posted",
    "plan.shard",
    "mrjob.status",
    "mrjob.delete-pod",
    "mrjob.expire",
    "mrjob.finalizer",
    "sparkapp.status",
    "sparkapp.config-map",
    "sparkapp.service",
    "sparkapp.submit",
    "sparkapp.delete-pod",
    "sparkapp.expire",
    "learned.write",
    "mrjob.submit",
    "scheduler.create",
    "scheduler.bind",
)
NAMES = tuple(f"{moment}-{write}" for write in WRITES for moment in ("before", "after"))
"""`before-` and `after-` each write: in between, the API server has it and the process may not know."""


KILLED = 128 + signal.SIGKILL


class _Armed:
    """The one failpoint of this process; a module-level value, because it is set once, by the environment."""

    name: str | None = None
    remaining: int = 0


def arm(environment: Mapping[str, str] | None = None) -> str | None:
    """Read the environment; return what was armed, for the log.

    Raises:
        ValueError: The variable names no failpoint, or no count.
    """
    value = (os.environ if environment is None else environment).get(VARIABLE)
    if not value:
        _Armed.name = None
        return None
    name, _, count = value.partition(":")
    if name not in NAMES:
        raise ValueError(f'{VARIABLE} names "{name}"; the failpoints are: {", ".join(NAMES)}')
    if count and (not count.isdecimal() or int(count) < 1):
        raise ValueError(f'{VARIABLE}: after the colon stands "{count}", not a number from 1')
    _Armed.name, _Armed.remaining = name, int(count or 1)
    return value


def hit(name: str) -> None:
    """Pass a failpoint: nothing happens unless it is the armed one and its turn."""
    if name != _Armed.name:
        return
    _Armed.remaining -= 1
    if _Armed.remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
        os._exit(KILLED)  # process 1 of a container is spared its own signals; this too runs no clean-up
