"""A Maven repository in the cluster, for tests: one package behind a plain HTTP server."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from boathouse_e2e import images

if TYPE_CHECKING:
    from pathlib import Path

NAME = "maven"
_PORT = 8000
_FOLDER = "/repository"
_LABELS = {"app.kubernetes.io/name": NAME}
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
</project>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A jar and its Maven coordinates."""

    group: str
    artifact: str
    version: str
    jar: Path

    @property
    def coordinates(self) -> str:
        """GROUP:ARTIFACT:VERSION."""
        return f"{self.group}:{self.artifact}:{self.version}"

    def files(self) -> dict[str, bytes]:
        """Return the files of the package by their paths in a repository."""
        path = f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.artifact}-{self.version}"
        pom = _POM.format(group=self.group, artifact=self.artifact, version=self.version)
        return {f"{path}.pom": pom.encode(), f"{path}.jar": self.jar.read_bytes()}


def url(namespace: str) -> str:
    """Return the repository's address in the cluster."""
    return f"http://{NAME}.{namespace}.svc:{_PORT}"


def manifests(package: Package, *, namespace: str) -> list[dict[str, Any]]:
    """Return the files' ConfigMap, the server's pod, which satisfies `restricted`, and its Service."""
    metadata = {"name": NAME, "namespace": namespace, "labels": _LABELS}
    files = package.files()
    keys = {path: path.rpartition(".")[2] for path in files}
    data = {keys[path]: base64.b64encode(content).decode() for path, content in files.items()}
    items = [{"key": key, "path": path} for path, key in keys.items()]
    volume = {"name": "files", "configMap": {"name": NAME, "items": items}}
    ports = [{"port": _PORT, "targetPort": _PORT}]
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod(volume)},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": _LABELS, "ports": ports}},
    ]


def _pod(volume: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": "server",
        "image": images.TASK,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "http.server", str(_PORT), "--directory", _FOLDER],
        "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": volume["name"], "mountPath": _FOLDER, "readOnly": True}],
    }
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [volume],
    }
