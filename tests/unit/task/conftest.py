"""A folder for each test's jobs."""

from pathlib import Path

import pytest

from tests.unit.task.workshop import SUM, WORDS, Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def words() -> list[str]:
    """A mapper."""
    return WORDS


@pytest.fixture
def total() -> list[str]:
    """A combiner and reducer."""
    return SUM
