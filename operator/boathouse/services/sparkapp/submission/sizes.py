"""Read sizes as Spark does. Pure."""

import re
from collections.abc import Mapping
from typing import Final

_SIZE: Final = re.compile(r"(?P<number>[0-9]+)(?P<unit>[a-z]*)")
_BYTES: Final[Mapping[str, int]] = {
    name: 1024**power
    for power, names in enumerate((("b",), ("k", "kb"), ("m", "mb"), ("g", "gb"), ("t", "tb"), ("p", "pb")))
    for name in names
}
_MIB: Final = 1024**2
_LARGEST: Final = 2**63 - 1


def mebibytes(text: str, *, unit: str = "m") -> int:
    """Return a size in MiB, rounded down.

    Args:
        text: Such as `512m`, `2G` or, in the unit that the property has, `512`.
        unit: The unit of a number without one.

    Raises:
        ValueError: Spark does not read the text as a size.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    factor = _BYTES.get(match["unit"] or unit) if match else None
    if match is None or factor is None or len(match["number"]) > len(str(_LARGEST)):
        raise ValueError(f'"{text[:64]}" is not a size for Spark: write a whole number with a unit, such as 512m or 2g')
    return int(match["number"]) * factor // _MIB


def spark_size(size: str) -> str:
    """Return the size of a field as Spark reads it: `2Gi` is `2g`."""
    return re.sub(r"i?b?$", "", size.lower())
