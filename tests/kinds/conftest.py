"""The fake API server, and a leader with both kinds, as fixtures."""

import pytest

from tests.kinds.two_kinds import leading
from tests.wire.conftest import api, eventually, pytest_runtest_makereport  # noqa: F401 - fixtures and a hook


@pytest.fixture
async def kinds(api):  # noqa: F811 - the fixture
    async with leading(api) as both:
        yield both
