"""Choose a provider by name, or the one that fits this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_e2e.docker import docker_answers
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.existing import ExistingProvider
from boathouse_e2e.kind.provider import KindProvider
from boathouse_e2e.local import state
from boathouse_e2e.local.provider import LocalProvider

if TYPE_CHECKING:
    from boathouse_e2e.spec import Provider

NAMES = ("auto", "local", "kind", "existing")


def choose(provider: str, *, name: str = "", context: str | None = None) -> Provider:
    """Return the provider of this name; for `auto` that of the cluster `name`, or kind where Docker answers, or local.

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
            known = state.load(name) if name else None
            if known:
                return KindProvider() if known.provider == state.KIND else LocalProvider()
            return KindProvider() if docker_answers() else LocalProvider()
        case _:
            raise ClusterError(f"no provider {provider!r}; there are {', '.join(NAMES)}")
