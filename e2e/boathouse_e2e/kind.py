"""The kind provider: nodes are Docker containers, of the Kubernetes version that the pinned kind brings."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from boathouse_e2e import catalogue, kwok, tools
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.existing import find_kubectl, node_status
from boathouse_e2e.local import processes
from boathouse_e2e.local.processes import Component
from boathouse_e2e.paths import locked, state_folder
from boathouse_e2e.shell import run, succeeds
from boathouse_e2e.spec import Cluster, ClusterSpec, ComponentStatus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

READY_TIMEOUT = "300s"
_KWOK_NETWORK = "10.224.0.0/16"
_LEASE_S = 40


class KindProvider:
    """Clusters of Docker containers."""

    name = "kind"

    def missing(self, spec: ClusterSpec) -> list[str]:
        """Return what kind lacks for the spec on this machine."""
        wrong = []
        if not succeeds("docker", "info"):
            wrong.append("kind needs Docker, and `docker info` does not answer: start it, or use PROVIDER=local")
        if spec.kubernetes != catalogue.DEFAULT_RELEASE:
            wrong.append(f"Kubernetes {spec.kubernetes} is had from the local provider only (PROVIDER=local)")
        if spec.audit_log:
            wrong.append("the audit log is had from the local provider only (PROVIDER=local)")
        return wrong

    def up(self, spec: ClusterSpec) -> Cluster:
        """Create the cluster, or find it; fake nodes are kept by a KWOK beside it.

        Raises:
            ClusterError: Docker does not answer, or kind failed.
        """
        spec = spec.validated()
        if problems := self.missing(spec):
            raise ClusterError("\n".join(problems))
        with locked(self._folder(spec.name).with_suffix(".lock")):
            cluster = self.find(spec.name) or self._create(spec)
            if spec.kwok_nodes and not self._kwok_id(spec.name):
                self._start_kwok(cluster, spec)
        return cluster

    def down(self, name: str) -> None:
        """Delete the cluster and what was made for it."""
        if kwok_id := self._kwok_id(name):
            processes.end_all(kwok_id)
        folder = self._folder(name)
        if succeeds("docker", "info"):
            run(self._kind(), "delete", "cluster", "--name", name, "--kubeconfig", folder / "kubeconfig")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        if folder.exists():
            folder.rmdir()

    def find(self, name: str) -> Cluster | None:
        """Return the cluster of this name, if kind has it."""
        if name not in run(self._kind(), "get", "clusters").split():
            return None
        kubeconfig = self._folder(name) / "kubeconfig"
        run(self._kind(), "export", "kubeconfig", "--name", name, "--kubeconfig", kubeconfig)
        context = f"kind-{name}"
        cluster = Cluster(
            name=name, provider=self.name, kubeconfig=kubeconfig, context=context, kubectl=find_kubectl(), server=""
        )
        view = json.loads(cluster.run("config", "view", "--minify", "-o", "json"))
        return Cluster(
            name=name,
            provider=self.name,
            kubeconfig=kubeconfig,
            context=context,
            kubectl=cluster.kubectl,
            server=view["clusters"][0]["cluster"]["server"],
        )

    def status(self, name: str) -> list[ComponentStatus]:
        """Return the nodes of the cluster."""
        cluster = self.find(name)
        return node_status(cluster) if cluster else []

    def load_images(self, cluster: Cluster, archives: Sequence[Path]) -> None:
        """Load docker-archive files into every node."""
        for archive in archives:
            run(self._kind(), "load", "image-archive", archive, "--name", cluster.name)

    def _kind(self) -> Path:
        return tools.ensure(["kind"])["kind"]

    def _folder(self, name: str) -> Path:
        return state_folder() / "kind" / name

    def _create(self, spec: ClusterSpec) -> Cluster:
        folder = self._folder(spec.name)
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "kind.json"
        config.write_text(json.dumps(kind_config(spec)))
        print(f"Creating kind cluster {spec.name!r} of {max(1, spec.nodes)} nodes", flush=True)
        run(
            *(self._kind(), "create", "cluster", "--name", spec.name, "--config", config),
            *("--kubeconfig", folder / "kubeconfig", "--wait", READY_TIMEOUT),
        )
        cluster = self.find(spec.name)
        assert cluster, "kind has just created it"
        return cluster

    def _start_kwok(self, cluster: Cluster, spec: ClusterSpec) -> None:
        folder = self._folder(spec.name)
        kwok_id = uuid.uuid4().hex
        (folder / "kwok-id").write_text(kwok_id)
        program = tools.ensure(["kwok"])["kwok"]
        arguments = kwok.arguments(spec, cluster.kubeconfig, network=_KWOK_NETWORK, lease_duration_s=_LEASE_S)
        component = Component(name="kwok", command=(str(program), *arguments), log=str(folder / "kwok.log"))
        processes.start(component, cluster_id=kwok_id, folder=folder)
        cluster.apply(*(kwok.node(spec, index) for index in range(spec.kwok_nodes)))
        cluster.run("wait", "--for=condition=Ready", "nodes", "-l", "type=kwok", "--timeout=120s")

    def _kwok_id(self, name: str) -> str | None:
        """Return the mark of the KWOK that runs beside the cluster, if it lives."""
        path = self._folder(name) / "kwok-id"
        if not path.exists() or not processes.find(path.read_text()):
            return None
        return path.read_text()


def kind_config(spec: ClusterSpec) -> dict[str, Any]:
    """Return the configuration for kind: the first node is also the control plane; racks and kubelets as asked."""
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "maxPods": spec.node_max_pods,
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
    }
    flags: dict[str, dict[str, object]] = {
        "apiServer": {
            "default-not-ready-toleration-seconds": str(spec.eviction_toleration_s),
            "default-unreachable-toleration-seconds": str(spec.eviction_toleration_s),
        },
        "controllerManager": {},
    }
    if spec.node_monitor_grace_period_s is not None:
        flags["controllerManager"]["node-monitor-grace-period"] = f"{spec.node_monitor_grace_period_s}s"
    control_plane = {
        "kind": "ClusterConfiguration",
        **{
            component: {"extraArgs": [{"name": name, "value": value} for name, value in values.items()]}
            for component, values in flags.items()
        },
    }
    nodes = [
        {
            "role": "worker" if index else "control-plane",
            "labels": {"topology.kubernetes.io/zone": "zone-0", "boathouse.dev/rack": f"rack-{index % spec.racks}"},
        }
        for index in range(max(1, spec.nodes))
    ]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": nodes,
        "kubeadmConfigPatches": [json.dumps(settings), json.dumps(control_plane)],
    }
