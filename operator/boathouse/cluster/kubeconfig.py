"""Read kubeconfig files as kubectl does: contexts of several files, and credentials of exec plugins and of OIDC.

The plugins' protocol is `client.authentication.k8s.io`:
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins. The tokens of the
auth provider `oidc` are renewed by kubectl itself, because it also has to store them.
"""

import base64
import binascii
import dataclasses
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from boathouse.cluster import server_time
from boathouse.cluster.errors import ConfigError

DEFAULT = "~/.kube/config"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A cluster, user or context of a kubeconfig: its fields, and its file, which relative paths refer to."""

    fields: Mapping[str, Any]
    file: Path

    def text(self, field: str) -> str | None:
        """Return the text of `FIELD-data` in base64, else of the file that `FIELD` names; None without both."""
        try:
            if data := self.fields.get(f"{field}-data"):
                return base64.b64decode(str(data), validate=True).decode()
            if name := self.fields.get(field):
                return self.path(name).read_text()
        except (OSError, binascii.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{field} of the kubeconfig {self.file} cannot be read: {error}") from error
        return None

    def path(self, name: str) -> Path:
        """Return the path of a file that the kubeconfig names."""
        return self.file.parent / str(name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A context with its cluster and its user, who is anonymous if the context names none."""

    name: str
    context: Entry
    cluster: Entry
    user: Entry


def user_files() -> list[Path]:
    """Return the files that kubectl reads: those of `$KUBECONFIG`, or `~/.kube/config`; only those that exist."""
    listed = (os.environ.get("KUBECONFIG") or DEFAULT).split(os.pathsep)
    return [file for name in listed if name and (file := Path(name).expanduser()).exists()]


def select(files: Sequence[Path], context: str | None = None) -> Selection:
    """Return a context of some files, by default the current one. Of entries with one name, the first file's counts."""
    documents = [(file, _read(file)) for file in files]
    current = (document.get("current-context") for _, document in documents)
    wanted = str(context or next(filter(None, current), ""))
    chosen = _named(documents, "context", wanted)
    user = str(chosen.fields.get("user") or "")
    return Selection(
        name=wanted,
        context=chosen,
        cluster=_named(documents, "cluster", str(chosen.fields.get("cluster") or "")),
        user=_named(documents, "user", user) if user else Entry({}, chosen.file),
    )


def _read(file: Path) -> dict[str, Any]:
    from boathouse import bounded_yaml  # YAML is needed only for kubeconfigs

    try:
        document = bounded_yaml.load(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"the kubeconfig {file} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"the kubeconfig {file} is not a mapping")
    return document


def _named(documents: Sequence[tuple[Path, dict[str, Any]]], kind: str, name: str) -> Entry:
    listed = ((entry, file) for file, document in documents for entry in document.get(f"{kind}s") or ())
    entries = [(entry, file) for entry, file in listed if isinstance(entry, dict) and entry.get("name")]
    for entry, file in entries:
        if entry["name"] == name:
            return Entry(dict(entry.get(kind) or {}), file)
    names = ", ".join(sorted({str(entry["name"]) for entry, _ in entries})) or "none"
    where = ", ".join(str(file) for file, _ in documents)
    raise ConfigError(f"the kubeconfig {where} has no {kind} {name!r}; it has: {names}")


_EARLY_S: Final = 10
"""How long before its expiry a token or credential is renewed, as in client-go: a request takes a while to arrive."""
_RENEWAL_S: Final = 60


def oidc_token(selected: Selection, files: Sequence[Path], kubeconfig: Path | None) -> str:
    """Return the ID token of a context of some files, renewed if it has expired; the user may name one `kubeconfig`."""
    name = selected.user.fields["auth-provider"].get("name")
    if name != "oidc":
        raise ConfigError(
            f"context {selected.name!r} uses the auth provider {name!r}, which kubectl no longer has: "
            "write its kubeconfig anew, with an exec plugin such as gke-gcloud-auth-plugin or kubelogin"
        )
    if id_token := _oidc_id_token(selected.user):
        return id_token
    _renew_with_kubectl(kubeconfig, selected.name)
    if id_token := _oidc_id_token(select(files, selected.name).user):
        return id_token
    raise ConfigError(f"the ID token of context {selected.name!r} has expired: log in to its OIDC provider")


def _renew_with_kubectl(kubeconfig: Path | None, context: str) -> None:
    """Let kubectl renew and store the tokens of a context, by a request that needs no right."""
    program = shutil.which("kubectl")
    if program is None:
        what = "has expired and kubectl, which renews it, is not on PATH: install it"
        raise ConfigError(f"the ID token of context {context!r} {what}")
    options = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    command = (program, *options, f"--context={context}", "get", "--raw=/version", f"--request-timeout={_RENEWAL_S}s")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = next(reversed(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise ConfigError(f"kubectl cannot renew the ID token of context {context!r}: {why}")


def _oidc_id_token(user: Entry) -> str | None:
    """Return the ID token if it is there and has not expired. The API server verifies it, this only reads it."""
    id_token = (user.fields["auth-provider"].get("config") or {}).get("id-token")
    try:
        payload = str(id_token).split(".")[1]
        expires_at_s = float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return None
    return str(id_token) if server_time.SERVER_TIME.now_s() < expires_at_s - _EARLY_S else None


PLUGIN_GROUP: Final = "client.authentication.k8s.io"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A bearer token, or the PEM of a client certificate and its key; without `expires_at_s` it lasts."""

    token: str | None = dataclasses.field(default=None, repr=False)
    client_pem: str | None = dataclasses.field(default=None, repr=False)
    expires_at_s: float | None = None

    def is_current(self, now_s: float) -> bool:
        """Return whether it can be used at a Unix time."""
        return self.expires_at_s is None or now_s < self.expires_at_s - _EARLY_S


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints a credential, and may, or must, talk to the user; None if it is not told of a cluster."""

    command: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    api_version: str = f"{PLUGIN_GROUP}/v1"
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Mapping[str, Any] | None = None

    def run(self) -> Credential:
        """Run the program. Its messages go to standard error, and it may ask the user, as under kubectl."""
        is_interactive = self.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.interactive_mode == "Always" and not is_interactive:
            raise ConfigError(f"the plugin {self.command} asks questions: run the command in a terminal")
        spec = {"interactive": is_interactive} | ({} if self.cluster is None else {"cluster": self.cluster})
        information = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})
        try:
            done = subprocess.run(
                (self.command, *self.arguments),
                env=os.environ | self.variables | {"KUBERNETES_EXEC_INFO": information},
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                check=False,
            )
        except OSError as error:
            hint = f": {self.install_hint.strip()}" if self.install_hint else ": install it, or put it on PATH"
            raise ConfigError(f"the plugin {self.command} cannot be run ({error.strerror}){hint}") from error
        if done.returncode:
            why = f"the plugin {self.command} failed with exit code {done.returncode}: log in as its messages say"
            raise ConfigError(why)
        return self._credential(done.stdout)

    def _credential(self, printed: bytes) -> Credential:
        """Return what the program printed. The text itself is a secret, so no message quotes it."""
        try:
            answer = json.loads(printed)
            version, status = answer["apiVersion"], answer["status"]
            if version != self.api_version:
                raise ConfigError(
                    f"the plugin {self.command} answered in version {version}, the kubeconfig says {self.api_version}: "
                    "update the plugin, or write its kubeconfig anew"
                )
            certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
            expires = status.get("expirationTimestamp")
            made = Credential(
                token=status.get("token"),
                client_pem=f"{certificate}\n{key}" if certificate and key else None,
                expires_at_s=dt.datetime.fromisoformat(expires).timestamp() if expires else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"the plugin {self.command} printed no ExecCredential: update it") from error
        if made.token is None and made.client_pem is None:
            raise ConfigError(f"the plugin {self.command} printed neither a token nor a certificate: log in again")
        return made


def exec_plugin(user: Mapping[str, Any], cluster: Mapping[str, Any] | None, folder: Path) -> ExecPlugin:
    """Return the plugin of the field `exec` of a user; `folder` is the base of a relative path, not of a name."""
    version, command = str(user.get("apiVersion") or ""), str(user.get("command") or "")
    if not version.startswith(f"{PLUGIN_GROUP}/") or not command:
        what = f"has apiVersion {version!r}: use {PLUGIN_GROUP}/v1 or v1beta1"
        raise ConfigError(f"the kubeconfig's exec plugin {command!r} {what}")
    try:
        variables = {str(variable["name"]): str(variable["value"]) for variable in user.get("env") or ()}
        arguments = tuple(map(str, user.get("args") or ()))
    except (KeyError, TypeError) as error:
        raise ConfigError(f"args or env of the kubeconfig's exec plugin {command} is not a list: correct it") from error
    return ExecPlugin(
        command=str(folder / command) if "/" in command else command,
        arguments=arguments,
        variables=variables,
        api_version=version,
        install_hint=str(user.get("installHint") or ""),
        interactive_mode=str(user.get("interactiveMode") or "IfAvailable"),
        cluster=cluster if user.get("provideClusterInfo") else None,
    )
