"""Kubernetes quantities ("500m", "64Mi", 1) as exact integers.

The grammar is that of `k8s.io/apimachinery/pkg/api/resource`: a decimal number and a binary suffix (Ki..Ei), a decimal
suffix (n..E) or an exponent. Fractions are rounded up, as Kubernetes does.
"""

import math
import re
from decimal import Decimal

_GRAMMAR = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d+))?"
)
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {
    letter: Decimal(1000) ** power for power, letter in zip((-3, -2, -1, 1, 2, 3, 4, 5, 6), "numkMGTPE", strict=True)
}
_FACTORS = {"": Decimal(1)} | _BINARY | _DECIMAL


def parse(quantity: str | float) -> Decimal:
    """The exact value of a quantity.

    Raises:
        ValueError: The text is not a quantity.
    """
    match = _GRAMMAR.fullmatch(str(quantity))
    if match is None:
        raise ValueError(
            f'"{quantity}" is not a quantity: write a number with an optional suffix, such as 500m, 2 or 64Mi'
        )
    number = Decimal(match["number"])
    if match["exponent"]:
        return number.scaleb(int(match["exponent"]))
    return number * _FACTORS[match["suffix"] or ""]


def milli(quantity: str | float) -> int:
    """The quantity in thousandths, rounded up: CPU "0.5" is 500."""
    return math.ceil(parse(quantity) * 1000)


def units(quantity: str | float) -> int:
    """The quantity in whole units, rounded up: memory "1Ki" is 1024 bytes."""
    return math.ceil(parse(quantity))


def format_milli(value: int) -> str:
    """A CPU quantity as people write it: 2000 is "2", 500 is "500m"."""
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"


def format_bytes(value: int) -> str:
    """A memory quantity with the largest binary suffix that loses nothing: 67108864 is "64Mi"."""
    for power, letter in reversed(list(enumerate("KMGTPE", 1))):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{letter}i"
    return str(value)
