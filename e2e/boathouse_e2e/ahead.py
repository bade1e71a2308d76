"""Install and build what tests need before the first of them, or it would time out: a new machine takes long."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from boathouse_e2e import catalogue, debian, images, tools
from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pytest


@contextlib.contextmanager
def shown(config: pytest.Config) -> Iterator[None]:
    """Let what is printed in the block reach the terminal, as progress of a long step."""
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        yield


def build(
    config: pytest.Config,
    programs: Iterable[str],
    image_names: Iterable[str] = (),
    packages: Mapping[str, str] | None = None,
) -> None:
    """Install packages, and build tools and images; where that fails, the tests that need them say so.

    Args:
        config: Of the run whose terminal shows the progress.
        programs: Names of tools.
        image_names: Names of images.
        packages: Debian packages, as in `debian`.
    """
    with shown(config), contextlib.suppress(ClusterError):
        debian.ensure(packages or {})
        tools.ensure(programs)
        images.ensure(image_names)


def build_tools(session: pytest.Session, *programs: str) -> None:
    """Build the tools of a control plane and others, if the run has tests and is no worker of another one."""
    config = session.config
    if session.items and not config.option.collectonly:
        build(config, (*catalogue.for_provider("local", nodes=0, kwok_nodes=1), *programs))
