"""Real Karpenter with its KWOK provider: its decisions are real, and its nodes are fake.

It is a process beside a control plane, whose KWOK keeps the nodes that it creates.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

from boathouse_e2e import catalogue, lab, tools, waiting
from boathouse_e2e.local import processes
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from boathouse_e2e.spec import Cluster

NODE_CPU: Final = 2
NODE_MEMORY: Final = "8Gi"
RESERVED_CPU_MILLI: Final = 100
"""What the provider keeps back of each node."""
_POOL: Final = "default"
_BATCH_IDLE_S: Final = 3
"""Pods that come within this time get their nodes at once. Longer than the default, 1 s: the machine may be busy."""
_PATIENCE_S: Final = 120
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_GROUP, _PROVIDER_GROUP = "karpenter.sh", "karpenter.kwok.sh"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A NodeClaim.

    Attributes:
        name: Its name.
        requests: The sum of the requests of the pods for which it was made.
        is_registered: Whether its node is there.
    """

    name: str
    requests: Mapping[str, str]
    is_registered: bool


class Karpenter:
    """Karpenter on a cluster.

    Args:
        cluster: The cluster.
        folder: For its log and its instance types.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self.log = folder / "karpenter.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it with one NodePool, which has one type of instances."""
        programs = tools.ensure(catalogue.KARPENTER)
        self._cluster.run("apply", "--server-side", "-f", "-", stdin=run(programs["karpenter-crds"]))
        kinds = (f"crd/nodepools.{_GROUP}", f"crd/kwoknodeclasses.{_PROVIDER_GROUP}")
        self._cluster.run("wait", "--for=create", "--for=condition=Established", *kinds)
        self._cluster.apply(_node_class(), _node_pool())
        types = self._folder / "instance-types.json"
        types.write_text(json.dumps([_instance_type()]))
        metrics_port, health_port = lab.free(2)
        arguments = {
            "metrics-port": metrics_port,
            "health-probe-port": health_port,
            "disable-leader-election": "true",
            "batch-idle-duration": f"{_BATCH_IDLE_S}s",
            "instance-types-file-path": types,
        }
        command = [str(programs["karpenter"]), *(f"--{key}={value}" for key, value in arguments.items())]
        environment = {**os.environ, "KUBECONFIG": str(self._cluster.kubeconfig), "SYSTEM_NAMESPACE": "kube-system"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        waiting.until(self._is_ready, "Karpenter knows its NodePool", within_s=_PATIENCE_S)

    def _is_ready(self) -> bool:
        self.check()
        pool = self._cluster.get("nodepool", _POOL)
        conditions = pool.get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def check(self) -> None:
        """Raise AssertionError if it has ended by itself."""
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"Karpenter ended with {code}: {processes.log_tail(self.log)}"

    def stop(self) -> None:
        """End its process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)

    def claims(self) -> list[Claim]:
        """Return the NodeClaims."""
        return [
            Claim(
                name=item["metadata"]["name"],
                requests=item["spec"]["resources"]["requests"],
                is_registered=_is_registered(item),
            )
            for item in self._cluster.get("nodeclaims")["items"]
        ]

    def nodes(self) -> set[str]:
        """Return the names of the cluster's nodes."""
        return {node["metadata"]["name"] for node in self._cluster.get("nodes")["items"]}

    def protected(self) -> set[str]:
        """Return the nodes that Karpenter does not touch because of the annotation of a pod, as its events say."""
        events = self._cluster.get("events", "-A", "--field-selector=involvedObject.kind=Node")["items"]
        return {event["involvedObject"]["name"] for event in events if _DO_NOT_DISRUPT in event["message"]}


def _is_registered(claim: dict[str, Any]) -> bool:
    conditions = claim.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("Registered", "True") for one in conditions)


def _instance_type() -> dict[str, Any]:
    requirements = [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-0"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    return {
        "name": "standard-2",
        "offerings": [{"Price": 0.1, "Requirements": requirements}],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": str(NODE_CPU), "memory": NODE_MEMORY, "ephemeral-storage": "1Ti"},
    }


def _node_class() -> dict[str, Any]:
    return {"apiVersion": f"{_PROVIDER_GROUP}/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": _POOL}}


def _node_pool() -> dict[str, Any]:
    """Return a NodePool whose nodes are removed, and whose pods are moved, as soon as that is allowed."""
    template = {
        "nodeClassRef": {"group": _PROVIDER_GROUP, "kind": "KWOKNodeClass", "name": _POOL},
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
        "expireAfter": "Never",
    }
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
        "budgets": [{"nodes": "100%"}],
    }
    spec = {"template": {"spec": template}, "disruption": disruption}
    return {"apiVersion": f"{_GROUP}/v1", "kind": "NodePool", "metadata": {"name": _POOL}, "spec": spec}


@contextlib.contextmanager
def running(cluster: Cluster, folder: Path) -> Iterator[Karpenter]:
    """Karpenter until the block ends."""
    one = Karpenter(cluster, folder)
    try:
        one.start()
        yield one
    finally:
        one.stop()
