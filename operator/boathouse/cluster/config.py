"""Address and credentials of the API server: the pod's service account, or a kubeconfig.

The operator takes what it can use for weeks without asking anybody (`load`), commands take whatever their user's
kubectl takes (`of_user`). If nothing usable is found, a `ConfigError` says why and what to set.
"""

import base64
import dataclasses
import os
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boathouse.cluster import kubeconfig as kubeconfigs
from boathouse.cluster.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Address and credentials of an API server, and the operator's namespace. Secrets are not in its `repr`."""

    server: str
    """Base URL. `http://` is accepted, for a proxy or a fake on this machine."""
    ca_pem: str | None = None
    """The authorities that may sign the server's certificate; None for the system's."""
    token: str | None = dataclasses.field(default=None, repr=False)
    token_file: Path | None = None
    """Takes precedence over `token`, and is read again after its rotation."""
    client_pem: str | None = dataclasses.field(default=None, repr=False)
    """A client certificate followed by its key."""
    tls_server_name: str | None = None
    """Name to verify in the server's certificate; None for the URL's host."""
    is_verified: bool = True
    proxy_url: str | None = dataclasses.field(default=None, repr=False)
    headers: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    """Of each request: whom the user acts as, and a password."""
    plugin: kubeconfigs.ExecPlugin | None = None
    """Returns the token or the client certificate; only for commands."""
    namespace: str = "default"

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context, None for plain HTTP."""
        if self.server.startswith("http://"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.ca_pem)
            if self.client_pem:  # ssl loads certificates only from files; the file has the mode 0600
                with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                    file.write(self.client_pem)
                    file.flush()
                    context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise ConfigError(f"the CA or client certificate for {self.server} cannot be used: {error}") from error
        return context


def load(kubeconfig: Path | None = None) -> ClusterConfig:
    """Return the configuration: from the given kubeconfig, else the pod's service account, else `$KUBECONFIG`."""
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    path = kubeconfig or os.environ.get("KUBECONFIG")
    if not path:
        raise ConfigError("not in a pod (KUBERNETES_SERVICE_HOST is unset) and KUBECONFIG is unset: set KUBECONFIG")
    return from_kubeconfig(Path(path))


def in_cluster(folder: Path = SERVICE_ACCOUNT) -> ClusterConfig:
    """Return the configuration of the pod's service account."""
    try:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        ca_pem, namespace = (folder / "ca.crt").read_text(), (folder / "namespace").read_text().strip()
        (folder / "token").read_bytes()
    except (KeyError, OSError) as error:
        why = f"no service account in this pod ({error}): set automountServiceAccountToken: true"
        raise ConfigError(why) from error
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterConfig(server=server, ca_pem=ca_pem, token_file=folder / "token", namespace=namespace)


def from_kubeconfig(path: Path) -> ClusterConfig:
    """Return the current context of a kubeconfig; plugins, passwords and unverified TLS are refused."""
    selected = kubeconfigs.select([path])
    if selected.cluster.fields.get("insecure-skip-tls-verify"):
        what = "disables TLS verification (insecure-skip-tls-verify): set certificate-authority"
        raise ConfigError(f"the kubeconfig {path} {what}")
    for field in ("exec", "auth-provider", "username"):
        if selected.user.fields.get(field):
            why = f"the kubeconfig {path} authenticates with {field!r}: use a token or a client certificate"
            raise ConfigError(why)
    return _config(selected)


def of_user(kubeconfig: Path | None = None, context: str | None = None) -> ClusterConfig:
    """Return the configuration of kubectl: that of a kubeconfig, `$KUBECONFIG`, `~/.kube/config`, or the pod."""
    files = [kubeconfig] if kubeconfig else kubeconfigs.user_files()
    if not files and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return in_cluster()
    if not files:
        named = os.environ.get("KUBECONFIG")
        raise ConfigError(f"{named or kubeconfigs.DEFAULT} does not exist" + (" (KUBECONFIG)" if named else ""))
    selected = kubeconfigs.select(files, context)
    user, cluster_config = selected.user.fields, _config(selected)
    if user.get("token") or user.get("tokenFile"):  # client-go's order too
        return cluster_config
    if user.get("auth-provider"):
        return dataclasses.replace(cluster_config, token=kubeconfigs.oidc_token(selected, files, kubeconfig))
    if plugin := user.get("exec"):
        made = kubeconfigs.exec_plugin(plugin, _plugins_cluster(selected), selected.user.file.parent)
        return dataclasses.replace(cluster_config, plugin=made)
    return cluster_config


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
        # kubectl lets a SOCKS proxy resolve the names, libcurl's `socks5` does not
        proxy_url=(cluster.fields.get("proxy-url") or "").replace("socks5://", "socks5h://", 1) or None,
        headers=(*_password(user.fields), *_impersonation(user.fields)),
        namespace=selected.context.fields.get("namespace") or "default",
    )


def _password(user: Mapping[str, Any]) -> tuple[str, ...]:
    if not user.get("username") or user.get("token"):
        return ()
    pair = base64.b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()
    return (f"Authorization: Basic {pair}",)


def _impersonation(user: Mapping[str, Any]) -> tuple[str, ...]:
    extra = [
        (f"Extra-{urllib.parse.quote(str(key).lower(), safe='')}", value)
        for key, values in (user.get("as-user-extra") or {}).items()
        for value in values
    ]
    groups = [("Group", group) for group in user.get("as-groups") or ()]
    named = [("User", user.get("as")), ("Uid", user.get("as-uid")), *groups, *extra]
    return tuple(f"Impersonate-{name}: {value}" for name, value in named if value)


def _plugins_cluster(selected: kubeconfigs.Selection) -> dict[str, Any]:
    """Return what a plugin is told of the cluster (`client.authentication.k8s.io`, `Cluster`)."""
    fields, authority = selected.cluster.fields, selected.cluster.text("certificate-authority")
    extensions = {extension.get("name"): extension.get("extension") for extension in fields.get("extensions") or ()}
    told = {
        **{name: fields.get(name) for name in ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")},
        "certificate-authority-data": base64.b64encode(authority.encode()).decode() if authority else None,
        "config": extensions.get(f"{kubeconfigs.PLUGIN_GROUP}/exec"),
    }
    return {name: value for name, value in told.items() if value}
