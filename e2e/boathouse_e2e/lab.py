"""A real API server with the chart's roles and policies, and operators that are processes of their own.

No kubelet runs: KWOK lets pods start, and `kubelets` ends those of tasks by a model. So a whole job takes two seconds,
and the operator can be killed hundreds of times.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import yaml

from boathouse import failpoints
from boathouse_e2e import install, paths, rights, shell, tools, waiting
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from boathouse_e2e.spec import Cluster


_FIRST, _BLOCKS, _BLOCK = 20_000, 120, 100
"""Ports below those of the kernel for connections, which could take one before a server does."""
_OWN: Final = _FIRST + os.getpid() % _BLOCKS * _BLOCK
_PORTS: Final = itertools.cycle(range(_OWN, _OWN + _BLOCK))
"""Those of this process: one of a test beside it could be taken between the look and the server's start."""


def free(count: int) -> list[int]:
    """Return distinct ports that nobody listens at."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            port = next(_PORTS)
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("", port)))
                ports.append(port)
        return ports


NAMESPACE = "demo"
ACCOUNT = f"system:serviceaccount:{install.NAMESPACE}:boathouse"
CANARY = "a-canary-that-sings-nowhere"
IDENTITIES = ("op-1", "op-2")
_REPLICAS = itertools.count(1)
_PATIENCE_S = 120
FEW = ClusterSpec(nodes=0, kwok_nodes=3, kwok_node_cpu=4, kwok_node_memory_mib=4096, kwok_resizes=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How long a leader is waited for, in seconds.

    A replica that starts again under its name takes its Lease at once, so where there is one only it may be long: no
    pause of a busy machine ends it.
    """

    duration_s: float = 60
    renew_deadline_s: float = 40
    retry_s: float = 2


class Operator:
    """One replica: a process that can be killed, paused and started again under its name.

    Args:
        lab: The cluster.
        identity: The replica's name.
        lease: Its timing of the Lease.
        settings: Configuration beside what the laboratory needs, with the file's keys.
        checkout: The checkout whose operator runs.
    """

    def __init__(
        self, lab: Lab, identity: str, lease: Lease, settings: Mapping[str, Any], checkout: Path = paths.REPOSITORY
    ) -> None:
        self._lab, self._identity, self._checkout = lab, identity, checkout
        self.port, self.metrics_port, self.health_port = free(3)
        self.log = lab.folder / f"{identity}.{next(_REPLICAS)}.log"  # of this replica alone, whatever others have said
        self._config = self.log.with_suffix(".json")
        self._process: subprocess.Popen[bytes] | None = None
        config = {
            "namespace": install.NAMESPACE,
            "task": {**settings.get("task", {}), "image": "task:dev"},
            "progressService": "localhost",
            "lease": {
                "durationSeconds": lease.duration_s,
                "renewDeadlineSeconds": lease.renew_deadline_s,
                "retryPeriodSeconds": lease.retry_s,
            },
        }
        own = {"progressPort": self.port, "metricsPort": self.metrics_port, "healthPort": self.health_port}
        self._config.write_text(json.dumps({**settings, **config, **own}))

    def start(self, failpoint: str = "") -> None:
        """Begin a life; it ends itself where `failpoint` says."""
        folders = (self._checkout / "operator", self._checkout / "policies")
        path = os.pathsep.join(map(str, folders))
        environment = {**os.environ, failpoints.VARIABLE: failpoint, "PYTHONPATH": path}
        command = [sys.executable, "-m", "boathouse", f"--config={self._config}", f"--identity={self._identity}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, f"--kubeconfig={self._lab.operator_kubeconfig}"], env=environment, stdout=log, stderr=log
            )

    @property
    def lives(self) -> bool:
        """Whether it runs, or stands still."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of its process, which must live."""
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How its last life ended; None while it lives."""
        return None if self._process is None else self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self._process is not None and self.lives:
            self._process.send_signal(number)

    def ends_within(self, patience_s: float) -> bool:
        """Wait until the process ends by itself; say whether it did."""
        try:
            if self._process is not None:
                self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(timeout=30)


class Lab:
    """The cluster and what is recorded of it.

    Attributes:
        chart_config: The operator's configuration as the chart writes it.
    """

    def __init__(self, cluster: Cluster, folder: Path, audit_log: Path) -> None:
        self.cluster, self.folder, self.audit_log = cluster, folder, audit_log
        self.operator_kubeconfig = folder / "operator.kubeconfig"
        self.nodes = {node["metadata"]["name"]: node["status"]["allocatable"] for node in cluster.get("nodes")["items"]}
        self.chart_config: dict[str, Any] = {}
        self._audited_bytes = 0

    @contextlib.contextmanager
    def operator(
        self,
        identity: str = IDENTITIES[0],
        lease: Lease = Lease(),
        settings: Mapping[str, Any] = MappingProxyType({}),
        checkout: Path = paths.REPOSITORY,
    ) -> Iterator[Operator]:
        """Yield a replica that is not started; stop it at the end of the block."""
        one = Operator(self, identity, lease, settings, checkout)
        try:
            yield one
        finally:
            one.kill()

    def new_audit_events(self) -> list[dict[str, Any]]:
        """Return what the API server has audited since this was last asked."""
        with self.audit_log.open("rb") as log:
            log.seek(self._audited_bytes)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._audited_bytes += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]


@contextlib.contextmanager
def laboratory(
    folder: Path,
    spec: ClusterSpec = FEW,
    values: Mapping[str, Any] = MappingProxyType({}),
    checkout: Path = paths.REPOSITORY,
) -> Iterator[Lab]:
    """Start the control plane with such nodes and apply the chart of a checkout, all but its Deployment."""
    name, audit_log = f"lab-{os.getpid()}", folder / "audit.log"
    provider = LocalProvider()
    spec = dataclasses.replace(spec, name=name, audit_log=audit_log)
    try:
        lab = Lab(provider.up(spec), folder, audit_log)
        _install(lab, render(values, checkout))
        yield lab
    finally:
        provider.down(name)
        if audit_log.exists() and checkout == paths.REPOSITORY:
            rights.record(audit_log, folder.name.rstrip("0123456789"))


def render(values: Mapping[str, Any], checkout: Path = paths.REPOSITORY) -> list[dict[str, Any]]:
    """Return the chart's manifests, as Helm renders them."""
    chart = checkout / install.CHART.relative_to(paths.REPOSITORY)
    rendered = shell.run(
        *(tools.ensure(["helm"])["helm"], "template", install.RELEASE, chart),
        *("--namespace", install.NAMESPACE, "--skip-tests", "--values", "-"),
        stdin=json.dumps(dict(values)),
    )
    return [manifest for manifest in yaml.safe_load_all(rendered) if manifest]


def _config(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the operator's configuration among the manifests."""
    maps = [
        manifest["data"]
        for manifest in manifests
        if manifest["kind"] == "ConfigMap" and "config.json" in manifest["data"]
    ]
    return json.loads(maps[0]["config.json"])  # type: ignore[no-any-return] # an object


def _install(lab: Lab, manifests: list[dict[str, Any]]) -> None:
    cluster = lab.cluster
    lab.chart_config = _config(manifests)
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in (install.NAMESPACE, NAMESPACE)
    ]
    cluster.apply(*namespaces)
    first = [manifest for manifest in manifests if manifest["kind"] == "CustomResourceDefinition"]
    cluster.apply(*first)
    waiting.until(lambda: _established(cluster), "the API server serves the chart's resources", within_s=_PATIENCE_S)
    cluster.apply(
        *(manifest for manifest in manifests if manifest["kind"] not in ("CustomResourceDefinition", "Deployment"))
    )
    cluster.apply(*map(_replica, IDENTITIES), _secret())
    _write_kubeconfig(lab)
    accounts = ("serviceaccounts", "-n", NAMESPACE)
    waiting.until(lambda: cluster.get(*accounts)["items"], "the namespace has its account", within_s=_PATIENCE_S)


def _established(cluster: Cluster) -> bool:
    """Asked by hand: `kubectl wait` fails where there are no conditions yet."""
    kinds = cluster.get("crd")["items"]
    conditions = [one for crd in kinds for one in crd.get("status", {}).get("conditions") or ()]
    return sum((one["type"], one["status"]) == ("Established", "True") for one in conditions) == len(kinds)


def _replica(name: str) -> dict[str, Any]:
    """Return a pod for an operator's process to be known by; it gets no node, so nothing runs in it."""
    container = {
        "name": "operator",
        "image": "operator:dev",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    secure = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"schedulerName": "nobody", "serviceAccountName": "boathouse", "containers": [container]}
    metadata = {"name": name, "namespace": install.NAMESPACE, "labels": {"app.kubernetes.io/name": "boathouse"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | {"securityContext": secure}}


def _secret() -> dict[str, Any]:
    keys = {"AWS_ACCESS_KEY_ID": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY}
    metadata = {"name": "s3-credentials", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys}


def _write_kubeconfig(lab: Lab) -> None:
    """Write the kubeconfig of the operator's account, so that roles and policies apply to these processes too."""
    cluster = lab.cluster
    token = cluster.run("create", "token", "boathouse", "-n", install.NAMESPACE, "--duration=12h").strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    lab.operator_kubeconfig.touch(mode=0o600)
    lab.operator_kubeconfig.write_text(yaml.safe_dump(config))
