"""Choose a provider by name, or the one that fits this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.existing import ExistingProvider
from boathouse_e2e.kind import KindProvider
from boathouse_e2e.local import state
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.shell import succeeds

if TYPE_CHECKING:
    from boathouse_e2e.spec import Provider

NAMES = ("auto", "local", "kind", "existing")


def choose(provider: str, *, name: str = "", context: str | None = None) -> Provider:
    """Return the provider of this name; for `auto`, local where a local cluster `name` is known, then kind, then local.

    Raises:
        ClusterError: there is no such provider, or it lacks the context.
    """
    match provider:
        case "local":
            return LocalProvider()
        case "kind":
            return KindProvider()
        case "existing":
            return ExistingProvider(context)
        case "auto":
            known = bool(name) and state.load(name) is not None
            return KindProvider() if not known and docker_answers() else LocalProvider()
        case _:
            raise ClusterError(f"no provider {provider!r}; there are {', '.join(NAMES)}")


def docker_answers() -> bool:
    """Return whether a Docker daemon is there to be used."""
    return succeeds("docker", "info")
