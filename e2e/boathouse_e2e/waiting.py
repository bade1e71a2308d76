"""Waiting for a condition, which is what tests do instead of sleeping; who waits in vain hears what was seen last.

The patience is for a machine that is slow or busy: it costs a test that passes nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_SOON_S, _SELDOM_S, _SHARE = 0.1, 1.0, 0.05
"""Between questions: the shortest and the longest time, and a share of the time that has passed."""


def until(look: Callable[[], T | None], what: str, *, within_s: float, every_s: float | None = None) -> T:
    """Ask again until the answer is true, and return it.

    Args:
        look: Asks.
        what: What is waited for.
        within_s: How long.
        every_s: For what is true for a moment only. Default: soon at first, and after a while seldom, since who asks
            takes the CPU from what is waited for.

    Raises:
        AssertionError: It was not in time; says what the last answer was.
    """
    began_s = time.monotonic()
    while not (found := look()):
        _check(found, what, began_s + within_s, within_s)
        waited_s = time.monotonic() - began_s
        time.sleep(every_s or min(_SELDOM_S, max(_SOON_S, waited_s * _SHARE)))
    return found


async def eventually(
    look: Callable[[], Awaitable[T] | T], what: str = "", *, within_s: float, every_s: float = 0.05
) -> T:
    """`until` for a condition that may be a coroutine function.

    Raises:
        AssertionError: It was not true in time; says what the last answer was.
    """
    deadline_s = time.monotonic() + within_s
    while not (found := await _answer(look)):
        _check(found, what, deadline_s, within_s)
        await asyncio.sleep(every_s)
    return found


async def _answer(look: Callable[[], Awaitable[T] | T]) -> T:
    answer = look()
    return await answer if inspect.isawaitable(answer) else answer


def _check(last: object, what: str, deadline_s: float, within_s: float) -> None:
    if time.monotonic() > deadline_s:
        raise AssertionError(f"in {within_s:g} s not: {what or 'what was waited for'}; the last answer was {last!r}")
