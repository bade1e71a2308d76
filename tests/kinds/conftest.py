"""The fake API server, and a leader with both kinds, as fixtures."""

import pytest

from tests.kinds.world import world
from tests.wire.conftest import api, eventually, pytest_runtest_makereport  # noqa: F401 - fixtures and a hook


@pytest.fixture
async def leader(api):  # noqa: F811 - the fixture
    async with world(api) as made:
        yield made
