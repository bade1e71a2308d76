"""Install and build what tests need before the first of them, or it would time out: a new machine takes long."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from boathouse_e2e import debian, images, tools
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
    session: pytest.Session,
    programs: Iterable[str],
    image_names: Iterable[str] = (),
    packages: Mapping[str, str] | None = None,
) -> None:
    """Install packages, and build tools and images; where that fails, the tests that need them say so.

    Args:
        session: Nothing is done if it has no tests to run.
        programs: Names of tools.
        image_names: Names of images.
        packages: Debian packages, as in `debian`.
    """
    if not session.items or session.config.option.collectonly:
        return
    with shown(session.config), contextlib.suppress(ClusterError):
        debian.ensure(packages or {})
        tools.ensure(programs)
        images.ensure(image_names)
