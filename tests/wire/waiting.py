"""Waiting for a condition, which is what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

TURNS, EVERY_S = 20_000, 0.002
"""Patience is a number of turns of the event loop, in which all happens: on a busy machine they take longer."""


async def eventually(look: Callable[[], Awaitable[T] | T], what: str = "", *, turns: int = TURNS) -> T:
    """Check a condition, which may be a coroutine function, until it is true, and return its value.

    Raises:
        AssertionError: It was not true in time; says what the last value was.
    """
    for _ in range(turns):
        value = look()
        if found := (await value if inspect.isawaitable(value) else value):
            return found
        await asyncio.sleep(EVERY_S)
    raise AssertionError(f"in {turns} turns not: {what or 'what was waited for'}; the last value was {found!r}")
