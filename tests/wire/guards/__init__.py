"""Guards of the operator, by subject: what each protects, and how a test takes it away."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import pytest

    from tests.wire import fake_api


@dataclasses.dataclass(frozen=True)
class Guard:
    """A guard and the harm that it prevents.

    Attributes:
        scenario: Plays the attack or the fault; returns what broke, empty when nothing did.
        broken: Takes the guard away.
    """

    scenario: Callable[[fake_api.FakeApi, Path], Awaitable[list[Any]]]
    broken: Callable[[pytest.MonkeyPatch], object]
