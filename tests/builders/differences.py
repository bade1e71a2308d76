"""Differences between two JSON values by path, and whether they are declared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Iterate over the leaves of a JSON value by path; lists of named values by name."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            name = child.get("name", number) if isinstance(child, dict) else number
            rest = {key: part for key, part in child.items() if key != "name"} if isinstance(child, dict) else child
            yield from leaves(rest, f"{path}.{name}")
    else:
        yield path, value


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> set[str]:
    """Return the paths whose values differ."""
    return {path for path in {*first, *second} if first.get(path, ...) != second.get(path, ...)}


def declaration(path: str, declared: Iterable[str]) -> str | None:
    """Return the expression that declares a difference."""
    return next((pattern for pattern in declared if re.fullmatch(pattern, path)), None)
