"""What a cluster is asked to be, what one is once it is up, and what a provider of clusters does."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from boathouse_e2e import catalogue
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence

MAX_NODES = 200
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A cluster as asked for. What a provider cannot change in a cluster that is already there, it says and refuses.

    Attributes:
        name: lower-case letters, digits and hyphens, at most 40.
        kubernetes: the release, one of `catalogue.RELEASES` (local provider); without it, what the environment selects.
        nodes: real nodes; 0 gives a control plane alone, which is ready in a few seconds and needs no root.
        kwok_nodes: fake nodes for scale, kept by KWOK; tainted where there are real ones too.
        node_cpu: allocatable CPUs of a real node (local provider), at most what the machine has.
        node_memory_mib: allocatable memory of a real node (local provider), at most what the machine has.
        node_max_pods: pods that a real node takes.
        kwok_node_cpu: allocatable CPUs of a fake node.
        kwok_node_memory_mib: allocatable memory of a fake node.
        kwok_resizes: whether fake nodes actuate resizes of pods, for which KWOK compares each pod that changes.
        racks: nodes are spread over so many values of the label `boathouse.dev/rack`.
        audit_log: where the API server writes its audit log (local provider); None for no log.
        node_monitor_grace_period_s: silence after which a node is NotReady; None for Kubernetes' default.
        eviction_toleration_s: how long pods stay on a node that is not ready (default tolerations).
        apiserver_args: more flags for kube-apiserver (local provider).
        controller_manager_args: more flags for kube-controller-manager (local provider).
        scheduler_args: more flags for kube-scheduler (local provider).
    """

    name: str = "boathouse"
    kubernetes: str = dataclasses.field(default_factory=catalogue.chosen_release)
    nodes: int = 2
    kwok_nodes: int = 0
    node_cpu: int = 2
    node_memory_mib: int = 4096
    node_max_pods: int = 110
    kwok_node_cpu: int = 32
    kwok_node_memory_mib: int = 256 * 1024
    kwok_resizes: bool = dataclasses.field(default=False, compare=False)
    racks: int = 2
    audit_log: Path | None = None
    node_monitor_grace_period_s: int | None = None
    eviction_toleration_s: int = 300
    apiserver_args: tuple[str, ...] = ()
    controller_manager_args: tuple[str, ...] = ()
    scheduler_args: tuple[str, ...] = ()

    def validated(self) -> ClusterSpec:
        """Return the same spec, or a ClusterError that names the field that cannot be."""
        if not _NAME.fullmatch(self.name):
            raise ClusterError(f"the name {self.name!r} must be 1 to 40 lower-case letters, digits and hyphens")
        catalogue.family_of(self.kubernetes)
        if not 0 <= self.nodes <= MAX_NODES:
            raise ClusterError(
                f"nodes must be 0 to {MAX_NODES}, not {self.nodes}; fake nodes (kwok_nodes) have no limit"
            )
        for field in ("kwok_nodes", "eviction_toleration_s"):
            if getattr(self, field) < 0:
                raise ClusterError(f"{field} must not be negative")
        for field in ("node_cpu", "node_memory_mib", "node_max_pods", "kwok_node_cpu", "kwok_node_memory_mib", "racks"):
            if getattr(self, field) < 1:
                raise ClusterError(f"{field} must be at least 1")
        grace_s = self.node_monitor_grace_period_s
        if grace_s is not None and grace_s < MIN_GRACE_S:
            raise ClusterError(f"node_monitor_grace_period_s must be at least {MIN_GRACE_S}")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON has it, without what matters only while the cluster starts."""
        audit_log = str(self.audit_log) if self.audit_log else None
        kept = {key: value for key, value in asdict(self).items() if key != "kwok_resizes"}
        return dict(json.loads(json.dumps({**kept, "audit_log": audit_log})))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ClusterSpec:
        """Return the inverse of `to_json`. Fields that a later checkout has written are ignored."""
        names = {one.name for one in fields(cls)}
        data = {key: value for key, value in data.items() if key in names}
        tuples = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
        audit_log = Path(data["audit_log"]) if data["audit_log"] else None
        return replace(cls(kubernetes=catalogue.DEFAULT_RELEASE), **{**data, **tuples, "audit_log": audit_log})


MIN_GRACE_S = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that is up.

    Attributes:
        name: its name.
        provider: `local`, `kind` or `existing`.
        kubeconfig: a file that holds the credentials of an administrator.
        context: the context in that file; None for its current one.
        kubectl: the kubectl command.
        server: the API server's URL.
    """

    name: str
    provider: str
    kubeconfig: Path
    context: str | None
    kubectl: Path
    server: str

    def kubectl_command(self, *arguments: str) -> list[str]:
        """Return the words of a kubectl command against this cluster."""
        context = ("--context", self.context) if self.context else ()
        return [str(self.kubectl), "--kubeconfig", str(self.kubeconfig), *context, *arguments]

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 120) -> str:
        """Run kubectl against this cluster and return what it wrote.

        Raises:
            ClusterError: it failed or did not end in time.
        """
        return run(*self.kubectl_command(*arguments), stdin=stdin, timeout_s=timeout_s)

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get ... -o json`, decoded."""
        return json.loads(self.run("get", *arguments, "-o", "json"))  # type: ignore[no-any-return] # an object

    def workers(self) -> list[dict[str, Any]]:
        """Return the nodes that pods without tolerations may go to: neither a control plane nor fake."""
        return [
            node for node in self.get("nodes")["items"] if not any(map(_keeps_away, node["spec"].get("taints", ())))
        ]

    def apply(self, *objects: dict[str, Any]) -> None:
        """`kubectl apply --server-side` of the objects."""
        everything = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(everything))


def _keeps_away(taint: dict[str, str]) -> bool:
    """Return whether a taint says what a node is for; others come and go with its state."""
    return not taint["key"].startswith("node.kubernetes.io/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentStatus:
    """One process or node of a cluster, for `status`."""

    name: str
    state: str
    pid: int | None = None
    log: Path | None = None


class Provider(Protocol):
    """Makes clusters, ends them, and gets images to their nodes."""

    name: str

    def missing(self, spec: ClusterSpec) -> list[str]:
        """Return why this provider cannot run the spec on this machine, with what to do; empty where it can."""
        ...

    def up(self, spec: ClusterSpec) -> Cluster:
        """Start a cluster and wait until it is ready; a cluster that is already up with this spec is returned."""
        ...

    def down(self, name: str) -> None:
        """End a cluster and everything that was made for it; no error where there is none."""
        ...

    def find(self, name: str) -> Cluster | None:
        """Return the cluster of this name, if it is up."""
        ...

    def status(self, name: str) -> list[ComponentStatus]:
        """Return the cluster's parts; empty where there is no such cluster."""
        ...

    def load_images(self, cluster: Cluster, archives: Sequence[Path]) -> None:
        """Make images (docker-archive files) known to every real node."""
        ...


@runtime_checkable
class FaultInjection(Protocol):
    """A provider that can stop, pause and end components of a cluster for tests: `kubelet-NODE`, `kube-scheduler`.

    Each raises ClusterError where there is no such cluster or component.
    """

    def signal(self, name: str, component: str, number: signal.Signals) -> None:
        """Send a signal to a component's process: SIGCONT mends a SIGSTOP, `start_again` a SIGKILL of a kubelet."""
        ...

    def runs(self, name: str, component: str) -> bool:
        """Return whether a component's process is there."""
        ...

    def start_again(self, name: str, component: str) -> None:
        """Start a kubelet again that was killed, or whose node was switched off."""
        ...

    def switch_off(self, name: str, node: str) -> None:
        """End all processes of a node, as a power cut does; its kubelet, started again, brings it back."""
        ...
