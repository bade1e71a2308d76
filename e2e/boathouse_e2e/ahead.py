"""Build what tests need before the first of them, or it would time out: a new machine takes about 14 minutes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from boathouse_e2e import images, tools
from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


def build(session: pytest.Session, programs: Iterable[str], *, with_images: bool = False) -> None:
    """Build the tools of these names, and all images; where that fails, the tests that need them say so."""
    if not session.items or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled(), contextlib.suppress(ClusterError):
        tools.ensure(programs)
        if with_images:
            images.ensure(images.DEFAULT)
