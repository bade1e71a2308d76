"""Waiting for a condition, which is what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


async def eventually(holds: Callable[[], object], *, within_s: float = 20.0) -> None:
    """Wait until a condition holds, and fail when it does not in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"did not come true within {within_s} s")
        await asyncio.sleep(0.002)
