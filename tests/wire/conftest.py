"""The fake API server, a client of it, and patience, as fixtures."""

from __future__ import annotations

import logging

import pytest

from tests.wire import fake_api, waiting

logging.getLogger("boathouse").setLevel(logging.ERROR)  # these tests break things on purpose


@pytest.fixture
async def api():
    async with fake_api.FakeApi() as server:
        yield server


@pytest.fixture
async def client(api):
    async with api.client() as connected:
        yield connected


@pytest.fixture
def eventually():
    return waiting.eventually
