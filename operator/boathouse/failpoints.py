"""Failpoints of the operator, for tests: `BOATHOUSE_FAILPOINT=NAME[:N]` kills it at the N-th hit of a failpoint."""

import contextlib
from collections.abc import Iterator

from boathouse_task.failpoints import KILLED, Failpoints

__all__ = ["KILLED", "NAMES", "VARIABLE", "WRITES", "arm", "around", "hit"]
VARIABLE = "BOATHOUSE_FAILPOINT"

WRITES = (
    *("leader.acquired", "leader.label", "progress.ca", "plan.posted", "plan.shard"),
    *("mrjob.status", "mrjob.delete-pod", "mrjob.expire", "mrjob.finalizer"),
    *("sparkapp.status", "sparkapp.config-map", "sparkapp.service", "sparkapp.submit"),
    *("sparkapp.delete-pod", "sparkapp.expire"),
    *("mrcluster.status", "mrcluster.service", "mrcluster.config-map", "mrcluster.claim", "mrcluster.network-policy"),
    *("mrcluster.submit", "mrcluster.delete-pod", "mrcluster.orders", "mrcluster.expire"),
    "learned.write",
    *("mrjob.submit", "mrjob.tags", "mrjob.leave", "mrjob.kill-application"),
    *("scheduler.create", "scheduler.bind", "scheduler.resize", "scheduler.order", "scheduler.record"),
    *("scheduler.shrink", "scheduler.continue", "scheduler.grow"),
)
_FAILPOINTS = Failpoints(VARIABLE, WRITES)
NAMES = _FAILPOINTS.names
arm = _FAILPOINTS.arm
hit = _FAILPOINTS.hit


@contextlib.contextmanager
def around(write: str) -> Iterator[None]:
    """Hit the failpoint before a write, and the one after it unless it raises."""
    hit(f"before-{write}")
    yield
    hit(f"after-{write}")
