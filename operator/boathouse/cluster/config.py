"""Address and credentials of the API server: the pod's service account, or a kubeconfig file."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

from boathouse.cluster.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of a pod's token, CA and namespace."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Address and credentials of an API server.

    Attributes:
        server: Base URL. `http://` is accepted, for a proxy or a fake on this machine.
        ca_pem: PEM of the authorities that may sign the server's certificate; None for the system's.
        token: A bearer token that never changes.
        token_file: A file with the token, which is read again after its rotation; takes precedence over `token`.
        client_pem: PEM of a client certificate followed by its key.
        tls_server_name: Name to verify in the server's certificate; None for the URL's host.
        namespace: The operator's namespace.
    """

    server: str
    ca_pem: str | None = None
    token: str | None = dataclasses.field(default=None, repr=False)
    token_file: Path | None = None
    client_pem: str | None = dataclasses.field(default=None, repr=False)
    tls_server_name: str | None = None
    namespace: str = "default"

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context, None for plain HTTP.

        Raises:
            ConfigError: The CA, the client certificate or its key cannot be used.
        """
        if self.server.startswith("http://"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.ca_pem)
            if self.client_pem:
                _load_client_certificate(context, self.client_pem)
        except ssl.SSLError as error:
            raise ConfigError(f"the CA or client certificate for {self.server} cannot be used: {error}") from error
        return context


def load(kubeconfig: Path | None = None, context: str | None = None) -> ClusterConfig:
    """Return the configuration: from the given kubeconfig, else the pod's service account, else `$KUBECONFIG`.

    Raises:
        ConfigError: None of them is usable; the message says why and what to set.
    """
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    path = kubeconfig or (Path(os.environ["KUBECONFIG"]) if os.environ.get("KUBECONFIG") else None)
    if path is None:
        raise ConfigError("not in a pod (KUBERNETES_SERVICE_HOST is unset) and KUBECONFIG is unset: set KUBECONFIG")
    return from_kubeconfig(path, context)


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """Return the configuration of the pod's service account.

    Raises:
        ConfigError: The pod lacks the service account's variables or files.
    """
    try:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        ca_pem, namespace = (folder / "ca.crt").read_text(), (folder / "namespace").read_text().strip()
        (folder / "token").read_bytes()
    except (KeyError, OSError) as error:
        raise ConfigError(
            f"no service account in this pod ({error}): set automountServiceAccountToken: true"
        ) from error
    host = f"[{host}]" if ":" in host else host
    return ClusterConfig(
        server=f"https://{host}:{port}", ca_pem=ca_pem, token_file=folder / "token", namespace=namespace
    )


def from_kubeconfig(path: Path, context: str | None = None) -> ClusterConfig:
    """Read a kubeconfig's context: server, CA, and a token or a client certificate.

    Raises:
        ConfigError: The file is unreadable, lacks the context, or uses something unsupported: exec plugins, auth
            providers, passwords, or unverified TLS.
    """
    document = _read_yaml(path)
    wanted = context or document.get("current-context") or ""
    chosen = _named(document, "context", wanted, path)
    cluster = _named(document, "cluster", chosen.get("cluster", ""), path)
    user = _named(document, "user", chosen.get("user", ""), path)
    _refuse_what_we_do_not_do(cluster, user, path)
    certificate = _material(user, "client-certificate", path)
    return ClusterConfig(
        server=str(cluster.get("server", "")).rstrip("/"),
        ca_pem=_material(cluster, "certificate-authority", path),
        token=user.get("token"),
        token_file=path.parent / user["tokenFile"] if user.get("tokenFile") else None,
        client_pem=f"{certificate}\n{_material(user, 'client-key', path) or ''}" if certificate else None,
        tls_server_name=cluster.get("tls-server-name"),
        namespace=chosen.get("namespace", "default"),
    )


def _read_yaml(path: Path) -> dict[str, Any]:
    from boathouse import bounded_yaml  # YAML is needed only for kubeconfigs

    try:
        document = bounded_yaml.load(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"the kubeconfig {path} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"the kubeconfig {path} is not a mapping")
    return document


def _named(document: dict[str, Any], kind: str, name: str, path: Path) -> dict[str, Any]:
    for entry in document.get(f"{kind}s") or ():
        if entry.get("name") == name:
            return dict(entry.get(kind) or {})
    known = ", ".join(sorted(str(entry.get("name")) for entry in document.get(f"{kind}s") or ())) or "none"
    raise ConfigError(f"the kubeconfig {path} has no {kind} {name!r}; it has: {known}")


def _refuse_what_we_do_not_do(cluster: dict[str, Any], user: dict[str, Any], path: Path) -> None:
    if cluster.get("insecure-skip-tls-verify"):
        raise ConfigError(
            f"the kubeconfig {path} disables TLS verification (insecure-skip-tls-verify): set certificate-authority"
        )
    for field in ("exec", "auth-provider", "username"):
        if user.get(field):
            raise ConfigError(
                f"the kubeconfig {path} authenticates with {field!r}: use a token or a client certificate"
            )


def _material(entry: dict[str, Any], field: str, path: Path) -> str | None:
    try:
        if data := entry.get(f"{field}-data"):
            return base64.b64decode(str(data), validate=True).decode()
        if name := entry.get(field):
            return (path.parent / str(name)).read_text()
    except (OSError, binascii.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"{field} of the kubeconfig {path} cannot be read: {error}") from error
    return None


def _load_client_certificate(context: ssl.SSLContext, pem: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # mode 0600; ssl loads certificates only from files
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
