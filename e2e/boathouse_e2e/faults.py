"""Harm to the operator on purpose, and a record of what the cluster's pods did meanwhile.

Signals go to the operator's process itself, found by its pod's UID in this machine's /proc: nobody in the cluster is
told, unlike when a pod is deleted. That needs nodes that run on this machine (providers local and kind) and root.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from boathouse_e2e import errors, install, invariants, waiting

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator

    from boathouse_e2e.spec import Cluster

LEASE = "boathouse"
OPERATOR = "app.kubernetes.io/name=boathouse"
PROGRAM = b"boathouse"
_PATIENCE_S = 120


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The replica that holds the Lease, and the Lease's epoch."""

    pod: str
    uid: str
    epoch: int
    pid: int
    restarts: int

    def send(self, number: signal.Signals) -> None:
        """Send its process a signal; no error where it has ended already.

        Raises:
            ClusterError: this user may not.
        """
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return
        except PermissionError as error:
            raise errors.ClusterError(f"only root may signal the operator's process {self.pid}: run as root") from error

    @property
    def lives(self) -> bool:
        """Whether its process is still there."""
        return Path(f"/proc/{self.pid}").exists()


def epoch(cluster: Cluster) -> int:
    """Return the Lease's epoch now."""
    lease = cluster.get("lease", LEASE, "-n", install.NAMESPACE)
    return int(lease["spec"].get("leaseTransitions") or 0)


def leader(cluster: Cluster) -> Leader:
    """Return who leads now.

    Raises:
        ClusterError: Nobody does, or its process is not on this machine.
    """
    lease = cluster.get("lease", LEASE, "-n", install.NAMESPACE)["spec"]
    holder = lease.get("holderIdentity") or ""
    pods = cluster.get("pods", "-n", install.NAMESPACE, "-l", OPERATOR)["items"]
    for pod in pods:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if name in holder:
            statuses = pod["status"].get("containerStatuses") or [{"restartCount": 0}]
            return Leader(
                pod=name,
                uid=uid,
                epoch=int(lease["leaseTransitions"]),
                pid=_process(uid),
                restarts=statuses[0]["restartCount"],
            )
    raise errors.ClusterError(f"no pod of the operator holds the Lease (its holder is {holder!r})")


def _process(pod_uid: str) -> int:
    """Return the operator's process in a pod."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (
                folder.name.isdecimal()
                and pod_uid in (folder / "cgroup").read_text().replace("_", "-")
                and PROGRAM in (folder / "cmdline").read_bytes()
            ):
                return int(folder.name)
    raise errors.ClusterError(
        f"the process of pod {pod_uid} is not on this machine: signals need provider local or kind, and root"
    )


class Recording:
    """All changes of all pods, in the order in which the API server told them."""

    def __init__(self, log: IO[str], nodes: list[dict[str, Any]], watch: subprocess.Popen[str] | None = None) -> None:
        self._log = log
        self._watch = watch
        self._nodes = {node["metadata"]["name"]: node["status"]["allocatable"] for node in nodes}

    def changes(self) -> list[dict[str, Any]]:
        """Return the changes so far; an unfinished last one is left out.

        Raises:
            ClusterError: The watch has ended, so that some are missing.
        """
        if self._watch is not None and self._watch.poll() is not None:
            raise errors.ClusterError(f"the watch of all pods ended with {self._watch.returncode}")
        self._log.seek(0)
        text, decoder, at = self._log.read(), json.JSONDecoder(), 0
        found: list[dict[str, Any]] = []
        while (at := _skip_space(text, at)) < len(text):
            try:
                change, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                break
            found.append(change)
        return found

    def over_commits(self) -> list[invariants.Violation]:
        """Return every moment at which a node was asked for more than it has."""
        return invariants.over_commits(self.changes(), self._nodes)

    def hosts_used_twice(self) -> list[invariants.Violation]:
        """Return transient nodes of Hadoop clusters that have the name of an earlier one."""
        return invariants.hosts_used_twice(self.changes())

    def wrong_suspensions(self) -> list[invariants.Violation]:
        """Return suspended tasks without a record, and placements in CPU that a suspended task still held."""
        changes = self.changes()
        return [*invariants.without_record(changes), *invariants.counted_twice(changes, self._nodes)]


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


@contextlib.contextmanager
def recording(cluster: Cluster) -> Iterator[Recording]:
    """Record all changes of all pods while the block runs; some pod must be there, by which the beginning is known."""
    nodes = cluster.get("nodes")["items"]
    command = cluster.kubectl_command("get", "pods", "-A", "-o", "json", "--watch", "--output-watch-events")
    with tempfile.TemporaryFile("w+") as log:
        watch = subprocess.Popen(command, stdout=log, text=True)
        try:
            record = Recording(log, nodes, watch)
            waiting.until(record.changes, "the watch of all pods has begun", within_s=_PATIENCE_S)
            yield record
        finally:
            watch.terminate()
            watch.wait()
