"""Values of which cycles make many."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as value
else:

    def value(*, frozen: bool, **options: Any) -> Callable[[type], type]:
        """A dataclass that is frozen to type checkers alone: at run time that takes twice as long to make."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)


__all__ = ["value"]
