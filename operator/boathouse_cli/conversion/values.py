"""Texts of Spark's properties as values of a SparkApp's fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pydantic

from boathouse.resources import quantity
from boathouse.resources.sparkapp.sizes import SIZE_PATTERN, OverheadFactor
from boathouse_cli.conversion import uris

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from boathouse_cli.conversion.draft import Draft

MAX_ITEMS: Final = 64
MAX_REPOSITORIES: Final = 16
_NAME: Final = "[-A-Za-z0-9_.]+"
_FACTOR: Final = pydantic.TypeAdapter[str](OverheadFactor)
_TIME: Final = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>ms|s|min|m|h|d)?")
_SECONDS: Final = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
_MS_PER_S: Final = 1000

FILES: Final = frozenset({"deps.jars", "deps.pyFiles", "deps.files", "deps.archives"})


def of_field(draft: Draft, field: str, where: str, text: str) -> Any:
    """Return the value of a field that has one; None: the text stays a property, which may say more than the field.

    Args:
        draft: For its volumes, and for notes.
        field: Such as `driver.memory`.
        where: Where the text comes from.
        text: The value of the property.
    """
    if field in FILES:
        return _files(draft, where, text)
    if field.endswith(".javaOptions") and "-Xmx" in text:
        draft.note(where, "Spark refuses -Xmx: remove it, and set memory")
        return None
    if field.startswith("deps."):
        return _items(field, text)
    if field == "monitoring.eventLogDir":
        return text if uris.is_loadable(text) and not text.startswith("file:") else None
    return _BY_ENDING[field.rsplit(".", 1)[-1]](text.strip())


def words(text: str) -> list[str]:
    """Return the items of a list with commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


def boolean(text: str) -> bool | None:
    """Return what Spark reads as true or false."""
    return {"true": True, "false": False}.get(text.strip().lower())


def seconds(text: str, *, unit: str = "s") -> int | None:
    """Return a time of Spark's in whole seconds, rounded up; None for 0 and for what is no time."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        return None
    number, given = int(match["number"]), match["unit"] or unit
    return (-(-number // _MS_PER_S) if given == "ms" else number * _SECONDS[given]) or None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(2**31)) else None


def _positive(text: str) -> int | None:
    return _whole(text) or None


def _size(text: str) -> str | None:
    """Return a size; one that ends with b would be written back without it, so it stays as it is."""
    return text if re.fullmatch(SIZE_PATTERN, text) and not text.lower().endswith("b") else None


def _factor(text: str) -> str | None:
    try:
        return _FACTOR.validate_python(text)
    except pydantic.ValidationError:
        return None


def _cpu(text: str) -> str | None:
    try:
        return text if quantity.parse(text) > 0 else None
    except ValueError:
        return None


def _files(draft: Draft, where: str, text: str) -> list[str] | None:
    found = [uris.in_pods(draft, where, item) for item in words(text)]
    return found if 0 < len(found) <= MAX_ITEMS and all(map(uris.is_loadable, found)) else None


def _items(field: str, text: str) -> list[str] | None:
    pattern, most = _ITEMS[field]
    found = words(text)
    return found if 0 < len(found) <= most and all(re.fullmatch(pattern, item) for item in found) else None


_ITEMS: Final[Mapping[str, tuple[str, int]]] = {
    "deps.packages": (f"{_NAME}:{_NAME}:[-A-Za-z0-9_.+]+", MAX_ITEMS),
    "deps.excludePackages": (f"{_NAME}:{_NAME}", MAX_ITEMS),
    "deps.repositories": ("https?://[^, ]+", MAX_REPOSITORIES),
}
_BY_ENDING: Final[Mapping[str, Callable[[str], Any]]] = {
    "cores": _positive,
    "coreLimit": _cpu,
    "coreRequest": _cpu,
    "enabled": boolean,
    "initialExecutors": _whole,
    "instances": _whole,
    "javaOptions": lambda text: text or None,
    "maxExecutors": _positive,
    "memory": _size,
    "memoryOverhead": _size,
    "memoryOverheadFactor": _factor,
    "minExecutors": _whole,
    "minMemoryOverhead": _size,
    "offHeapMemory": _size,
    "pysparkMemory": _size,
    "shuffleTrackingTimeoutSeconds": lambda text: seconds(text, unit="ms"),
}
"""How a field is read, by the end of its path."""
