"""A mutating webhook in the cluster, for tests: it changes every pod that is created in its namespace from then on."""

from __future__ import annotations

import base64
import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse_e2e import admission_server, images
from boathouse_e2e.local import pki

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from boathouse_e2e.spec import Cluster

NAME = "webhook"
SIDECAR = "injected"
_FOLDER = "/webhook"
_LABELS = {"app.kubernetes.io/name": NAME}
_READY_TIMEOUT_S = 300
_NO_PRIVILEGES = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@contextmanager
def running(
    cluster: Cluster, namespace: str, *, node_selector: Mapping[str, str], refuses_dry_runs: bool = False
) -> Iterator[None]:
    """Have the pods of a namespace changed: a sidecar that never ends, more requests, a node selector.

    Raises:
        ClusterError: the webhook did not become ready.
    """
    settings = {"sidecar": _sidecar(), "nodeSelector": dict(node_selector), "refusesDryRuns": refuses_dry_runs}
    with tempfile.TemporaryDirectory() as folder:
        authority = pki.Authority(Path(folder), NAME)
        certificate, key = authority.issue("server", NAME, hosts=[f"{NAME}.{namespace}.svc"])
        files = {"tls.crt": certificate.read_text(), "tls.key": key.read_text()}
        bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
    cluster.apply(*_server(namespace, json.dumps(settings), files))
    ready = ("wait", f"pod/{NAME}", "-n", namespace, "--for=condition=Ready", f"--timeout={_READY_TIMEOUT_S}s")
    cluster.run(*ready, timeout_s=_READY_TIMEOUT_S + 10)
    configuration = _configuration(namespace, bundle)
    try:
        cluster.apply(configuration)
        yield
    finally:
        cluster.run("delete", "mutatingwebhookconfiguration", configuration["metadata"]["name"], "--ignore-not-found")


def _sidecar() -> dict[str, Any]:
    """Return a container that ends when it is told to and not before, as a proxy does."""
    return {
        "name": SIDECAR,
        "image": images.TASK,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "securityContext": _NO_PRIVILEGES,
    }


def _server(namespace: str, settings: str, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the program's ConfigMap, its keys, its pod, which satisfies `restricted`, and its Service."""
    metadata = {"name": NAME, "namespace": namespace, "labels": _LABELS}
    program = Path(admission_server.__file__).read_text()
    port = admission_server.PORT
    arguments = [settings, f"{_FOLDER}/tls.crt", f"{_FOLDER}/tls.key"]
    container = {
        "name": "server",
        "image": images.TASK,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", f"{_FOLDER}/server.py", *arguments],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}},
        "securityContext": _NO_PRIVILEGES,
        "volumeMounts": [{"name": "files", "mountPath": _FOLDER, "readOnly": True}],
    }
    sources = [{"configMap": {"name": NAME}}, {"secret": {"name": NAME}}]
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "files", "projected": {"sources": sources}}],
    }
    service = {"selector": _LABELS, "ports": [{"port": 443, "targetPort": port}]}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"server.py": program}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(files)},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
    ]


def _configuration(namespace: str, bundle: str) -> dict[str, Any]:
    name = f"{namespace}.tests.boathouse.dev"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": NAME, "namespace": namespace, "path": "/"}, "caBundle": bundle},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [rule],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }
