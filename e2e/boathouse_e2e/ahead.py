"""Build what tests need before the first of them, or it would time out: a new machine takes about 14 minutes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from boathouse_e2e import images, tools
from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


def build(session: pytest.Session, programs: Iterable[str], image_names: Iterable[str] = ()) -> None:
    """Build the tools and the images of these names; where that fails, the tests that need them say so."""
    if not session.items or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled(), contextlib.suppress(ClusterError):
        tools.ensure(programs)
        images.ensure(image_names)
