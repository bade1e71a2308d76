"""etcd, API server, controller manager and scheduler: their keys, files and command lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from boathouse_e2e import catalogue
from boathouse_e2e.local import pki
from boathouse_e2e.local.layout import node_name
from boathouse_e2e.local.processes import Component

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from boathouse_e2e.local.layout import Layout
    from boathouse_e2e.spec import ClusterSpec

_SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_DEFAULT_LEASE_S = 40
AUDIT_POLICY = "audit-policy.json"
_AUDIT_LOG_MB = 10_000
# Who talks to the API server, by the names that Kubernetes' built-in roles are bound to.
_CLIENTS = {
    "admin": ("kubernetes-admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
    "kube-proxy": ("system:kube-proxy", ()),
    "coredns": ("system:coredns", ()),
    catalogue.NETWORK_POLICIES: (catalogue.NETWORK_POLICIES, ("system:masters",)),
    "kwok": ("kwok", ("system:masters",)),
}


def write_credentials(layout: Layout, name: str) -> None:
    """Write the authority, all certificates, and a kubeconfig for each client; the administrator's is `kubeconfig`."""
    authority = pki.Authority(layout.pki, "ca")
    front = pki.Authority(layout.pki, "front-proxy-ca")
    hosts = dict.fromkeys([*_SERVICE_NAMES, "localhost", "127.0.0.1", layout.api_address, layout.api_service_address])
    authority.issue("apiserver", "kube-apiserver", hosts=list(hosts))
    authority.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client", organizations=("system:masters",))
    front.issue("front-proxy-client", "front-proxy-client")
    pki.write_signing_key(layout.pki, "service-account")
    users = {name: authority.issue(name, cn, organizations=groups) for name, (cn, groups) in _CLIENTS.items()}
    for index in range(layout.nodes):
        node = node_name(index)
        hosts_of_node = (node, layout.node_address(index))
        identity = f"system:node:{node}"
        users[node] = authority.issue(node, identity, organizations=("system:nodes",), hosts=hosts_of_node)
    for user, files in users.items():
        path = layout.kubeconfig if user == "admin" else kubeconfig_of(layout, user)
        pki.write_kubeconfig(path, cluster=name, server=layout.server, authority=authority.certificate, user=files)


def kubeconfig_of(layout: Layout, user: str) -> Path:
    """Return the kubeconfig file of a component."""
    return layout.pki / f"{user}.kubeconfig"


def audit_policy() -> dict[str, Any]:
    """Return what the audit log holds: the bodies of what schedulers write, and who asked for anything else."""
    bodies = [
        {"group": "", "resources": ["pods", "pods/*", "bindings"]},
        {"group": "coordination.k8s.io", "resources": ["leases"]},
        {"group": "boathouse.dev"},
    ]
    reading = {"level": "None", "verbs": ["get", "list", "watch"], "userGroups": ["system:nodes"]}
    rules = [reading, {"level": "Request", "resources": bodies}, {"level": "Metadata"}]
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}


def write_audit_policy(folder: Path, audit_log: Path) -> None:
    """Write the policy of the audit log into a cluster's folder, and make the log's folder."""
    audit_log.parent.mkdir(parents=True, exist_ok=True)
    (folder / AUDIT_POLICY).write_text(json.dumps(audit_policy()))


def audit_flags(*, policy: str, log: str) -> dict[str, str]:
    """Return the API server's flags for an audit log, as paths that the API server sees."""
    return {
        "audit-policy-file": policy,
        "audit-log-path": log,
        "audit-log-mode": "blocking",
        "audit-log-maxsize": str(_AUDIT_LOG_MB),  # the default, 100, would start a new file in the midst of a test
    }


def grace_period_flags(spec: ClusterSpec) -> dict[str, str]:
    """Return the controller manager's flags for the silence after which a node is NotReady."""
    if spec.node_monitor_grace_period_s is None:
        return {}
    return {"node-monitor-grace-period": f"{spec.node_monitor_grace_period_s}s", "node-monitor-period": "1s"}


def lease_duration_s(spec: ClusterSpec) -> int:
    """Return how long a node's lease lasts (renewed after a quarter of it): as long as its silence is borne."""
    return spec.node_monitor_grace_period_s or _DEFAULT_LEASE_S


def _flags(flags: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in flags.items())


def etcd(layout: Layout, tools: Mapping[str, Path]) -> Component:
    """Return the etcd of a cluster that nobody will miss: it does not wait for the disk."""
    client, peer = (f"http://127.0.0.1:{port}" for port in (layout.etcd_client_port, layout.etcd_peer_port))
    flags = {
        "name": "boathouse",
        "data-dir": layout.folder / "etcd",
        "unsafe-no-fsync": "true",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"boathouse={peer}",
        "quota-backend-bytes": 8 * 1024**3,
        "auto-compaction-retention": "10m",
        "log-level": "warn",
    }
    return _component(layout, "etcd", tools["etcd"], _flags(flags))


def kube_apiserver(layout: Layout, spec: ClusterSpec, tools: Mapping[str, Path]) -> Component:
    """Return the API server, with the defaults of a cluster: aggregation, node authorization, default admission."""
    keys = layout.pki
    flags: dict[str, object] = {
        "etcd-servers": f"http://127.0.0.1:{layout.etcd_client_port}",
        "bind-address": "0.0.0.0" if layout.isolated else "127.0.0.1",  # noqa: S104 # all of its own network namespace
        "secure-port": layout.api_port,
        "advertise-address": layout.api_address,
        "endpoint-reconciler-type": "lease" if layout.isolated else "none",
        "service-cluster-ip-range": layout.service_network,
        "tls-cert-file": keys / "apiserver.crt",
        "tls-private-key-file": keys / "apiserver.key",
        "client-ca-file": keys / "ca.crt",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": keys / "service-account.pub",
        "service-account-signing-key-file": keys / "service-account.key",
        "kubelet-client-certificate": keys / "apiserver-kubelet-client.crt",
        "kubelet-client-key": keys / "apiserver-kubelet-client.key",
        "kubelet-certificate-authority": keys / "ca.crt",
        "kubelet-preferred-address-types": "InternalIP",
        "requestheader-client-ca-file": keys / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": keys / "front-proxy-client.crt",
        "proxy-client-key-file": keys / "front-proxy-client.key",
        "default-not-ready-toleration-seconds": spec.eviction_toleration_s,
        "default-unreachable-toleration-seconds": spec.eviction_toleration_s,
    }
    if spec.audit_log:
        flags |= audit_flags(policy=str(layout.folder / AUDIT_POLICY), log=str(spec.audit_log))
    return _component(layout, "kube-apiserver", tools["kube-apiserver"], _flags(flags) + spec.apiserver_args)


def kube_controller_manager(layout: Layout, spec: ClusterSpec, tools: Mapping[str, Path]) -> Component:
    """Return the controller manager, with every controller that a default cluster runs."""
    keys = layout.pki
    flags: dict[str, object] = {
        **_client_flags(layout, "controller-manager"),
        "root-ca-file": keys / "ca.crt",
        "cluster-signing-cert-file": keys / "ca.crt",
        "cluster-signing-key-file": keys / "ca.key",
        "service-account-private-key-file": keys / "service-account.key",
        "use-service-account-credentials": "true",
    }
    arguments = _flags(flags | grace_period_flags(spec)) + spec.controller_manager_args
    return _component(layout, "kube-controller-manager", tools["kube-controller-manager"], arguments)


def kube_scheduler(layout: Layout, spec: ClusterSpec, tools: Mapping[str, Path]) -> Component:
    """Return the scheduler of everything that is not Boathouse's."""
    flags = _client_flags(layout, "scheduler")
    return _component(layout, "kube-scheduler", tools["kube-scheduler"], _flags(flags) + spec.scheduler_args)


def _client_flags(layout: Layout, user: str) -> dict[str, object]:
    kubeconfig = kubeconfig_of(layout, user)
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "leader-elect": "false",
        "secure-port": 0,
    }


def _component(layout: Layout, name: str, program: Path, arguments: tuple[str, ...]) -> Component:
    return Component(name=name, command=(str(program), *arguments), log=str(layout.logs / f"{name}.log"))


def write_files(layout: Layout, spec: ClusterSpec) -> None:
    """Write the credentials and the audit policy."""
    write_credentials(layout, spec.name)
    if spec.audit_log:
        write_audit_policy(layout.folder, spec.audit_log)
