"""Use the tokens of kubectl's auth provider `oidc`. kubectl itself renews them, because it also has to store them."""

from __future__ import annotations

import base64
import binascii
import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

from boathouse.cluster import server_time
from boathouse.cluster.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_EARLY_S: Final = 10
"""How long before its expiry a token is renewed, as in client-go."""
_RENEWAL_S: Final = 60


def token(provider: Mapping[str, Any], renew: Callable[[], Mapping[str, Any]], context: str) -> str:
    """Return the ID token of an auth provider, renewed if it has expired.

    Args:
        provider: The field `auth-provider` of a kubeconfig's user.
        renew: Renews the tokens; returns the field as it is then.
        context: The context, for messages.

    Raises:
        ConfigError: It is another provider, which kubectl no longer has either, or the token cannot be renewed.
    """
    name = provider.get("name")
    if name != "oidc":
        raise ConfigError(
            f"context {context!r} uses the auth provider {name!r}, which kubectl no longer has: "
            "write its kubeconfig anew, with an exec plugin such as gke-gcloud-auth-plugin or kubelogin"
        )
    found = _current(provider) or _current(renew())
    if found is None:
        raise ConfigError(f"the ID token of context {context!r} has expired: log in to its OIDC provider")
    return found


def renew_with_kubectl(kubeconfig: Path | None, context: str) -> None:
    """Let kubectl renew and store the tokens of a context, by a request that needs no right.

    Raises:
        ConfigError: kubectl is missing or fails.
    """
    program = shutil.which("kubectl")
    if program is None:
        raise ConfigError(
            f"the ID token of context {context!r} has expired and kubectl, which renews it, is not on PATH: install it"
        )
    options = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    command = (program, *options, f"--context={context}", "get", "--raw=/version", f"--request-timeout={_RENEWAL_S}s")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = next(reversed(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
        raise ConfigError(f"kubectl cannot renew the ID token of context {context!r}: {why}")


def _current(provider: Mapping[str, Any]) -> str | None:
    """Return the ID token if it is there and has not expired. The API server verifies it, this only reads it."""
    found = (provider.get("config") or {}).get("id-token")
    if not found:
        return None
    try:
        payload = str(found).split(".")[1]
        expires_at_s = float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return None
    return str(found) if server_time.SERVER_TIME.now_s() < expires_at_s - _EARLY_S else None
