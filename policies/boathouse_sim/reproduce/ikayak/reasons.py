"""Why rows do not hold, as experiments showed; by figure."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "6": "",
        "7a": "",
        "7a programs": "",
        "7b": "",
        "7c": "",
        "7c machines": "",
        "8a": "",
        "8a packed": "",
        "8b": "",
        "8b k-means": "",
        "9a": "",
        "9b": "",
        "10": "",
        "11a": "",
        "11c": "",
        "12": "",
        "13a": "",
        "13a programs": "",
        "13b": "",
    }
)
