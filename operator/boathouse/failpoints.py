"""Kill the process at a point that a test chooses: `BOATHOUSE_FAILPOINT=NAME[:N]` sends SIGKILL at its N-th hit.

Failpoints are off unless the variable is set. The code calls `hit(NAME)`; the name must be in `NAMES`, which can be
printed. A variable with an unknown name is rejected at the start.
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
    "scheduler.resize",
    "scheduler.order",
    "scheduler.record",
    "scheduler.shrink",
    "scheduler.continue",
    "scheduler.grow",
)
NAMES = tuple(f"{moment}-{write}" for write in WRITES for moment in ("before", "after"))
"""Failpoints before and after each write: in between, the API server may have it without the process's knowledge."""


KILLED = 128 + signal.SIGKILL


class _Armed:
    """The failpoint of this process, which the environment sets once."""

    name: str | None = None
    remaining: int = 0


def arm(environment: Mapping[str, str] | None = None) -> str | None:
    """Read the environment; return the failpoint that it sets, for the log.

    Raises:
        ValueError: The variable has an unknown failpoint or an invalid count.
    """
    value = (os.environ if environment is None else environment).get(VARIABLE)
    if not value:
        _Armed.name = None
        return None
    name, _, count = value.partition(":")
    if name not in NAMES:
        raise ValueError(f'{VARIABLE} names "{name}"; the failpoints are: {", ".join(NAMES)}')
    if count and (not count.isdecimal() or int(count) < 1):
        raise ValueError(f'{VARIABLE}: "{count}" after the colon is not a number from 1')
    _Armed.name, _Armed.remaining = name, int(count or 1)
    return value


def hit(name: str) -> None:
    """Kill the process if this failpoint is armed and has reached its count."""
    if name != _Armed.name:
        return
    _Armed.remaining -= 1
    if _Armed.remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
        os._exit(KILLED)  # the kernel does not deliver SIGKILL from process 1 to itself; this also runs no clean-up
