"""The configuration of a kind cluster: its nodes, and what kubeadm passes to the control plane and the kubelets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boathouse_e2e.kind.manifests import POD_NETWORK
from boathouse_e2e.local import control_plane, node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from boathouse_e2e.spec import ClusterSpec

ARCHIVES = "/kind/archives"
"""Where nodes see the folder of the images' archives."""
_AUDIT_FOLDER = "/var/log/boathouse-audit"
_AUDIT_POLICY = "/etc/kubernetes/audit-policy.json"
_EVICTION = {"memory.available": f"{node.EVICTION_MIB}Mi", "nodefs.available": "0%", "imagefs.available": "0%"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the machine of the Docker daemon offers.

    Attributes:
        cpus: its CPUs.
        memory_mib: its memory.
        archives: a folder of the machine with the archives of images.
        audit_policy: a file of the machine with the policy of the audit log.
        api: address and port of the machine where the API server is reached; None for kind's choice, on loopback.
    """

    cpus: int
    memory_mib: int
    archives: Path
    audit_policy: Path
    api: tuple[str, int] | None = None


def node_names(spec: ClusterSpec) -> list[str]:
    """Return the names of the nodes in kind's order, the control plane first."""
    workers = [f"{spec.name}-worker{index if index > 1 else ''}" for index in range(1, spec.nodes + 1)]
    return [f"{spec.name}-control-plane", *workers]


def kind_config(spec: ClusterSpec, machine: Machine) -> dict[str, Any]:
    """Return the configuration for kind: a control plane, and a worker for each node of the spec."""
    networking: dict[str, Any] = {"kubeProxyMode": "nftables", "podSubnet": POD_NETWORK}
    if machine.api:
        networking |= {"apiServerAddress": machine.api[0], "apiServerPort": machine.api[1]}
    workers = [{"role": "worker", "labels": node.node_labels(spec, index)} for index in range(spec.nodes)]
    nodes: list[dict[str, Any]] = [{"role": "control-plane"}, *workers]
    for kind_node in nodes:
        kind_node["extraMounts"] = [_mount(machine.archives, ARCHIVES, read_only=True)]
    nodes[0]["extraMounts"] += _audit_mounts(spec, machine)
    patches = (_cluster_configuration(spec), _kubelet_configuration(spec, machine))
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": networking,
        "nodes": nodes,
        "kubeadmConfigPatches": [json.dumps(patch) for patch in patches],
    }


def _mount(path: Path, inside: str, *, read_only: bool) -> dict[str, Any]:
    return {"hostPath": str(path), "containerPath": inside, "readOnly": read_only}


def _audit_mounts(spec: ClusterSpec, machine: Machine) -> list[dict[str, Any]]:
    if spec.audit_log is None:
        return []
    log = _mount(spec.audit_log.parent, _AUDIT_FOLDER, read_only=False)
    return [log, _mount(machine.audit_policy, _AUDIT_POLICY, read_only=True)]


def _cluster_configuration(spec: ClusterSpec) -> dict[str, Any]:
    """Return kubeadm's settings of the control plane."""
    server = {
        "default-not-ready-toleration-seconds": str(spec.eviction_toleration_s),
        "default-unreachable-toleration-seconds": str(spec.eviction_toleration_s),
        **_words(spec.apiserver_args),
    }
    volumes = []
    if spec.audit_log:
        server |= control_plane.audit_flags(policy=_AUDIT_POLICY, log=f"{_AUDIT_FOLDER}/{spec.audit_log.name}")
        volumes = [
            _volume("audit-policy", _AUDIT_POLICY, "File", read_only=True),
            _volume("audit-log", _AUDIT_FOLDER, "DirectoryOrCreate", read_only=False),
        ]
    manager = {**control_plane.grace_period_flags(spec), **_words(spec.controller_manager_args)}
    return {
        "kind": "ClusterConfiguration",
        "apiServer": {"extraArgs": _arguments(server), "extraVolumes": volumes},
        "controllerManager": {"extraArgs": _arguments(manager)},
        "scheduler": {"extraArgs": _arguments(_words(spec.scheduler_args))},
        "etcd": {"local": {"extraArgs": _arguments({"unsafe-no-fsync": "true"})}},
    }


def _volume(name: str, path: str, kind: str, *, read_only: bool) -> dict[str, Any]:
    return {"name": name, "hostPath": path, "mountPath": path, "pathType": kind, "readOnly": read_only}


def _words(flags: Iterable[str]) -> dict[str, str]:
    """Return flags such as `--v=2` by name."""
    return dict(flag.removeprefix("--").split("=", 1) for flag in flags)


def _arguments(flags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in flags.items()]


def _kubelet_configuration(spec: ClusterSpec, machine: Machine) -> dict[str, Any]:
    """Return the settings of all kubelets; what they reserve leaves of the whole machine what the spec says."""
    lease_s = control_plane.lease_duration_s(spec)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "maxPods": spec.node_max_pods,
        "failCgroupV1": False,
        "kubeReserved": node.reserved(spec, machine_cpus=machine.cpus, machine_memory_mib=machine.memory_mib),
        "evictionHard": _EVICTION,
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "serializeImagePulls": False,
        "nodeLeaseDurationSeconds": lease_s,
        "nodeStatusUpdateFrequency": node.status_update_frequency(lease_s),
    }
