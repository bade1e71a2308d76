"""Kubernetes quantities ("500m", "64Mi", 1) as exact integers.

The grammar is that of `k8s.io/apimachinery/pkg/api/resource`: a decimal number and a binary suffix (Ki..Ei), a decimal
suffix (n..E) or an exponent. Fractions are rounded up, as Kubernetes does. A quantity saturates at `LARGEST` in
magnitude, as in the API server, so that a long text cannot make a number that is expensive to compute with.
"""

import math
import re
from decimal import Decimal

LARGEST = Decimal(2**63 - 1)
"""The largest quantity of Kubernetes."""

_GRAMMAR = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_SMALLEST = Decimal("1e-30")
_EXPONENT_DIGITS = 12
_SHOWN = 64
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {
    letter: Decimal(1000) ** power for power, letter in zip((-3, -2, -1, 1, 2, 3, 4, 5, 6), "numkMGTPE", strict=True)
}
_FACTORS = {"": Decimal(1)} | _BINARY | _DECIMAL


def parse(quantity: str | float) -> Decimal:
    """Return the exact value of a quantity, at most `LARGEST` in magnitude; raises `ValueError` if it is none."""
    text = str(quantity)
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise ValueError(
            f'"{shown}" is not a quantity: write a number with an optional suffix, such as 500m, 2 or 64Mi'
        )
    number, power, factor = Decimal(match["number"]), _power(match["exponent"] or ""), _FACTORS[match["suffix"] or ""]
    # Checked before the computation: the number and its exponent may have thousands of digits.
    magnitude = number.adjusted() + power + factor.adjusted()
    if not number:
        return number
    if magnitude > LARGEST.adjusted() + 1:
        return LARGEST.copy_sign(number)
    if magnitude < _SMALLEST.adjusted():
        return _SMALLEST.copy_sign(number)
    value = number.scaleb(power) * factor
    return value if abs(value) <= LARGEST else LARGEST.copy_sign(value)


def _power(exponent: str) -> int:
    """Return an exponent as a number; a long one is cut to its first digits, which exceed `LARGEST` already."""
    return (-1 if exponent.startswith("-") else 1) * int(exponent.lstrip("+-").lstrip("0")[:_EXPONENT_DIGITS] or "0")


def milli(quantity: str | float) -> int:
    """Return the quantity in thousandths, rounded up: CPU "0.5" is 500."""
    return math.ceil(parse(quantity) * 1000)


def units(quantity: str | float) -> int:
    """Return the quantity in whole units, rounded up: memory "1Ki" is 1024 bytes."""
    return math.ceil(parse(quantity))


def format_milli(value: int) -> str:
    """Return a CPU quantity in the usual notation: 2000 is "2", 500 is "500m"."""
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"


def format_bytes(value: int) -> str:
    """Return a memory quantity with the largest binary suffix that is exact: 67108864 is "64Mi"."""
    for power, letter in reversed(list(enumerate("KMGTPE", 1))):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{letter}i"
    return str(value)
