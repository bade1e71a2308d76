"""The operator's replicas, for tests that harm them."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from boathouse import failpoints
from boathouse_e2e import errors, faults, install
from boathouse_e2e.spec import Cluster
from e2e.tests import harness

REPLICAS = 2


def wait_for_both(cluster: Cluster) -> None:
    """Wait until both replicas are ready and one of them leads, so that every test begins alike."""
    rollout = ("rollout", "status", install.DEPLOYMENT, "-n", install.NAMESPACE)
    cluster.run(*rollout, f"--timeout={harness.TIMEOUT_S}s", timeout_s=harness.TIMEOUT_S + 10)
    leader(cluster)


def leader(cluster: Cluster) -> faults.Leader:
    """The replica that leads, as soon as one does."""

    def leads() -> faults.Leader | None:
        try:
            return faults.leader(cluster)
        except errors.ClusterError:
            return None

    return harness.until(leads, "a replica leads")


def wait_for_successor(cluster: Cluster, epoch: int) -> float:
    """Return the seconds until the Lease has a later epoch."""
    began_s = time.monotonic()
    harness.until(lambda: faults.epoch(cluster) > epoch, "another epoch begins")
    return time.monotonic() - began_s


@contextlib.contextmanager
def unharmed_in_the_end(cluster: Cluster) -> Iterator[None]:
    """Have no failpoint set when the block ends, however it ends."""
    try:
        yield
    finally:
        _restart(cluster, f"{failpoints.VARIABLE}-")


def die_at(cluster: Cluster, failpoint: str) -> None:
    """Replace all replicas by ones that die at a failpoint, each time they come to it."""
    _restart(cluster, f"{failpoints.VARIABLE}={failpoint}")


def wait_for_death(cluster: Cluster, failpoint: str) -> None:
    """Wait until one of the replicas that there are now was killed."""

    def killed() -> bool:
        statuses = [status for pod in _pods(cluster) for status in pod["status"].get("containerStatuses", ())]
        return any(_exit_code(status) == failpoints.KILLED for status in statuses)

    harness.until(killed, f"a replica dies at {failpoint}")


def _exit_code(status: dict[str, Any]) -> int:
    ended = status["state"].get("terminated") or status["lastState"].get("terminated") or {}
    return int(ended.get("exitCode", 0))


def _pods(cluster: Cluster) -> list[dict[str, Any]]:
    return list(cluster.get("pods", "-n", install.NAMESPACE, "-l", faults.OPERATOR)["items"])


def _restart(cluster: Cluster, variable: str) -> None:
    """End all replicas before the first of the new ones starts: none of the old ones comes to a failpoint meanwhile."""
    here = ("-n", install.NAMESPACE)
    cluster.run("scale", install.DEPLOYMENT, *here, "--replicas=0")
    harness.until(lambda: not _pods(cluster), "all replicas have ended")
    cluster.run("set", "env", install.DEPLOYMENT, *here, variable)
    cluster.run("scale", install.DEPLOYMENT, *here, f"--replicas={REPLICAS}")
