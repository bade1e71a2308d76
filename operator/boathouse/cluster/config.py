"""Address and credentials of the API server: the pod's service account, or a kubeconfig.

The operator takes what it can use for weeks without asking anybody (`load`), commands take whatever their user's
kubectl takes (`of_user`).
"""

from __future__ import annotations

import base64
import dataclasses
import os
import ssl
import tempfile
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse.cluster import kubeconfig as kubeconfigs
from boathouse.cluster.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        is_verified: Whether the server's certificate is verified.
        proxy_url: A proxy between here and the server, as libcurl reads it.
        headers: Headers of each request: whom the user acts as, and a password.
        plugin: Returns the token or the client certificate; only for commands.
        namespace: The operator's namespace.
    """

    server: str
    ca_pem: str | None = None
    token: str | None = dataclasses.field(default=None, repr=False)
    token_file: Path | None = None
    client_pem: str | None = dataclasses.field(default=None, repr=False)
    tls_server_name: str | None = None
    is_verified: bool = True
    proxy_url: str | None = dataclasses.field(default=None, repr=False)
    headers: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    plugin: kubeconfigs.ExecPlugin | None = None
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
    """Read a kubeconfig's context for the operator: server, CA, and a token or a client certificate.

    Raises:
        ConfigError: The file is unreadable, lacks the context, or uses something unsupported: exec plugins, auth
            providers, passwords, or unverified TLS.
    """
    selected = kubeconfigs.select([path], context)
    _refuse_what_the_operator_does_not_do(selected)
    return _config(selected)


def of_user(kubeconfig: Path | None = None, context: str | None = None) -> ClusterConfig:
    """Return the configuration that kubectl would use: of a kubeconfig, `$KUBECONFIG`, `~/.kube/config`, or the pod's.

    Raises:
        ConfigError: None of them is usable; the message says why.
    """
    files = [kubeconfig] if kubeconfig else kubeconfigs.user_files()
    if not files and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    if not files:
        named = os.environ.get("KUBECONFIG")
        raise ConfigError(f"{named or kubeconfigs.DEFAULT} does not exist" + (" (KUBECONFIG)" if named else ""))
    selected = kubeconfigs.select(files, context)
    user = selected.user.fields
    cluster_config = _config(selected)
    if user.get("token") or user.get("tokenFile"):  # client-go's order too
        return cluster_config
    if provider := user.get("auth-provider"):
        token = kubeconfigs.oidc_token(provider, lambda: _renewed(kubeconfig, selected.name), selected.name)
        return dataclasses.replace(cluster_config, token=token)
    if plugin := user.get("exec"):
        made = kubeconfigs.exec_plugin(plugin, _plugins_cluster(selected), selected.user.file.parent)
        return dataclasses.replace(cluster_config, plugin=made)
    return cluster_config


def _renewed(kubeconfig: Path | None, context: str) -> Mapping[str, Any]:
    """Let kubectl renew the tokens of a context; return its user's auth provider then."""
    kubeconfigs.renew_with_kubectl(kubeconfig, context)
    files = [kubeconfig] if kubeconfig else kubeconfigs.user_files()
    return dict(kubeconfigs.select(files, context).user.fields["auth-provider"])


def _config(selected: kubeconfigs.Selection) -> ClusterConfig:
    """Return all of a context but what `exec` and `auth-provider` would add."""
    cluster, user = selected.cluster, selected.user
    certificate, server = user.text("client-certificate"), str(cluster.fields.get("server") or "").rstrip("/")
    if not server:
        raise ConfigError(f"the cluster of context {selected.name!r} of the kubeconfig {cluster.file} has no server")
    return ClusterConfig(
        server=server if "://" in server else f"https://{server}",
        ca_pem=cluster.text("certificate-authority"),
        token=user.fields.get("token"),
        token_file=user.path(user.fields["tokenFile"]) if user.fields.get("tokenFile") else None,
        client_pem=f"{certificate}\n{user.text('client-key') or ''}" if certificate else None,
        tls_server_name=cluster.fields.get("tls-server-name"),
        is_verified=not cluster.fields.get("insecure-skip-tls-verify"),
        proxy_url=_proxy(cluster.fields.get("proxy-url")),
        headers=(*_password(user.fields), *_impersonation(user.fields)),
        namespace=selected.context.fields.get("namespace") or "default",
    )


def _proxy(url: str | None) -> str | None:
    """Return the URL of a proxy for libcurl: kubectl lets a SOCKS proxy resolve the names, libcurl's `socks5` not."""
    return url.replace("socks5://", "socks5h://", 1) if url else None


def _password(user: Mapping[str, Any]) -> tuple[str, ...]:
    if not user.get("username") or user.get("token"):
        return ()
    pair = base64.b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()
    return (f"Authorization: Basic {pair}",)


def _impersonation(user: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the headers by which a user acts as somebody else."""
    extra = [
        (f"Extra-{urllib.parse.quote(str(key).lower(), safe='')}", value)
        for key, values in (user.get("as-user-extra") or {}).items()
        for value in values
    ]
    named = [
        ("User", user.get("as")),
        ("Uid", user.get("as-uid")),
        *(("Group", group) for group in user.get("as-groups") or ()),
    ]
    return tuple(f"Impersonate-{name}: {value}" for name, value in (*named, *extra) if value)


def _plugins_cluster(selected: kubeconfigs.Selection) -> dict[str, Any]:
    """Return what a plugin is told of the cluster (`client.authentication.k8s.io`, `Cluster`)."""
    fields, authority = selected.cluster.fields, selected.cluster.text("certificate-authority")
    extensions = {extension.get("name"): extension.get("extension") for extension in fields.get("extensions") or ()}
    cluster_fields = {
        "server": fields.get("server"),
        "tls-server-name": fields.get("tls-server-name"),
        "insecure-skip-tls-verify": fields.get("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(authority.encode()).decode() if authority else None,
        "proxy-url": fields.get("proxy-url"),
        "config": extensions.get(f"{kubeconfigs.PLUGIN_GROUP}/exec"),
    }
    return {name: value for name, value in cluster_fields.items() if value}


def _refuse_what_the_operator_does_not_do(selected: kubeconfigs.Selection) -> None:
    path = selected.cluster.file
    if selected.cluster.fields.get("insecure-skip-tls-verify"):
        raise ConfigError(
            f"the kubeconfig {path} disables TLS verification (insecure-skip-tls-verify): set certificate-authority"
        )
    for field in ("exec", "auth-provider", "username"):
        if selected.user.fields.get(field):
            raise ConfigError(
                f"the kubeconfig {path} authenticates with {field!r}: use a token or a client certificate"
            )


def _load_client_certificate(context: ssl.SSLContext, pem: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # mode 0600; ssl loads certificates only from files
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
