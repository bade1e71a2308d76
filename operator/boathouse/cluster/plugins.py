"""Get credentials from the exec plugins of a kubeconfig: EKS's, GKE's, AKS's, and those that log in by OIDC.

The protocol is that of `client.authentication.k8s.io`:
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from boathouse.cluster.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GROUP: Final = "client.authentication.k8s.io"
_EARLY_S: Final = 10
"""How long before its expiry a credential counts as expired: a request takes a while to arrive."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What a plugin returned. Secrets are not in its `repr`.

    Attributes:
        token: A bearer token.
        client_pem: PEM of a client certificate followed by its key.
        expires_at_s: Unix time; None if it does not expire while the process runs.
    """

    token: str | None = dataclasses.field(default=None, repr=False)
    client_pem: str | None = dataclasses.field(default=None, repr=False)
    expires_at_s: float | None = None

    def is_current(self, now_s: float) -> bool:
        """Return whether it can be used at a Unix time."""
        return self.expires_at_s is None or now_s < self.expires_at_s - _EARLY_S


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints a credential.

    Attributes:
        command: The program's name on PATH, or its path.
        arguments: Its arguments.
        variables: Variables beside those of this process.
        api_version: The version of the protocol.
        install_hint: What the kubeconfig says to somebody who lacks the program.
        interactive_mode: `Never`, `IfAvailable` or `Always`: whether it may, or must, talk to the user.
        cluster: The cluster that is passed to it; None if the kubeconfig does not say so.
    """

    command: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    api_version: str = f"{GROUP}/v1"
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Mapping[str, Any] | None = None

    def run(self) -> Credential:
        """Run the program. Its messages go to standard error, and it may ask the user, as under kubectl.

        Raises:
            ConfigError: It is missing, fails, needs a terminal that is not there, or prints no credential.
        """
        is_interactive = self.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.interactive_mode == "Always" and not is_interactive:
            raise ConfigError(f"the plugin {self.command} asks questions: run the command in a terminal")
        try:
            done = subprocess.run(
                (self.command, *self.arguments),
                env=os.environ | self.variables | {"KUBERNETES_EXEC_INFO": self._info(is_interactive)},
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                check=False,
            )
        except OSError as error:
            hint = f": {self.install_hint.strip()}" if self.install_hint else ": install it, or put it on PATH"
            raise ConfigError(f"the plugin {self.command} cannot be run ({error.strerror}){hint}") from error
        if done.returncode:
            raise ConfigError(
                f"the plugin {self.command} failed with exit code {done.returncode}: log in as its messages say"
            )
        return self._credential(done.stdout)

    def _info(self, is_interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        return json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})

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
            made = Credential(
                token=status.get("token"),
                client_pem=f"{certificate}\n{key}" if certificate and key else None,
                expires_at_s=_unix_time_s(status.get("expirationTimestamp")),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"the plugin {self.command} printed no ExecCredential: update it") from error
        if made.token is None and made.client_pem is None:
            raise ConfigError(f"the plugin {self.command} printed neither a token nor a certificate: log in again")
        return made


def read(user: Mapping[str, Any], cluster: Mapping[str, Any] | None, folder: Path) -> ExecPlugin:
    """Return the plugin of a kubeconfig's user.

    Args:
        user: The field `exec`.
        cluster: What the plugin gets if it asks for the cluster.
        folder: That of the kubeconfig: the base of a relative path. A bare name is looked up on PATH.

    Raises:
        ConfigError: A field is missing or invalid.
    """
    version, command = str(user.get("apiVersion") or ""), str(user.get("command") or "")
    if not version.startswith(f"{GROUP}/") or not command:
        raise ConfigError(
            f"the kubeconfig's exec plugin {command!r} has apiVersion {version!r}: use {GROUP}/v1 or v1beta1"
        )
    try:
        variables = {str(each["name"]): str(each["value"]) for each in user.get("env") or ()}
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


def _unix_time_s(text: str | None) -> float | None:
    return dt.datetime.fromisoformat(text).timestamp() if text else None
