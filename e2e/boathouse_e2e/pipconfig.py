"""This machine's pip settings as the two optional secrets that the Dockerfile takes; no layer keeps them."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Mapping

_PASSED_ON = ("index-url", "extra-index-url", "proxy", "trusted-host", "default-timeout", "timeout", "retries")
_CA_IN_BUILD = "/run/secrets/ca.crt"


def parse_pip_config(listing: str) -> dict[str, str]:
    """Return what `pip config list` printed -> option -> value; the environment's win, as in pip."""
    pairs = [line.partition("=") for line in listing.splitlines() if "=" in line]
    by_scope = {key: str(ast.literal_eval(value)) for key, _, value in pairs}
    scopes = ("global.", "install.", ":env:.")
    return {key[len(scope) :]: value for scope in scopes for key, value in by_scope.items() if key.startswith(scope)}


def pip_conf(settings: Mapping[str, str], *, own_authorities: bool) -> str:
    """Return the pip.conf of a build: what names where packages come from, nothing that is a path of this machine."""
    lines = [f"{name} = {_continued(settings[name])}" for name in _PASSED_ON if name in settings]
    if own_authorities:
        lines.append(f"cert = {_CA_IN_BUILD}")
    return "\n".join(["[global]", *lines, ""])


def _continued(value: str) -> str:
    return "\n    ".join(value.split("\n"))


def pip_secrets(folder: Path) -> list[str]:
    """Write the secrets into a folder; returns the builder's flags for them."""
    settings = _settings()
    authorities = settings.get("cert") or os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE")
    config = folder / "pip.conf"
    config.touch(mode=0o600)
    config.write_text(pip_conf(settings, own_authorities=bool(authorities)))
    flags = ["--secret", f"id=pip.conf,src={config}"]
    if authorities:
        flags += ["--secret", f"id=ca.crt,src={Path(authorities).resolve()}"]
    return flags


def _settings() -> dict[str, str]:
    """Return the settings of pip here, by whichever pip there is; none where there is no pip."""
    for python in (sys.executable, "python3"):
        try:
            return parse_pip_config(run(python, "-m", "pip", "config", "list"))
        except ClusterError:
            continue
    return {}
