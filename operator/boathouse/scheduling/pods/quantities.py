"""Sums of Kubernetes quantities, exactly.

Amounts are kept as whole numbers of nano-units, because that is the finest step the API server stores. Only the final
value is rounded, up, to the unit that schedulers count in: CPU in thousandths, all else in ones.
"""

import functools
import math

from boathouse.resources import quantity

NANO = 1_000_000_000
NANO_PER_MILLI = 1_000_000
LARGEST = int(quantity.LARGEST) * NANO
"""The largest amount of Kubernetes: sums saturate there too, so that a sum can be written as a quantity."""


@functools.lru_cache(maxsize=4096)
def nano(text: str | float) -> int:
    """Return a quantity in nano-units, rounded up. Cached, because a cluster's pods request few different amounts.

    Raises:
        ValueError: The text is not a quantity.
    """
    return math.ceil(quantity.parse(text).scaleb(9))


def milli(nano_units: int) -> int:
    """Return nano-units as thousandths, rounded up."""
    return -(-nano_units // NANO_PER_MILLI)


def ones(nano_units: int) -> int:
    """Return nano-units as whole units, rounded up."""
    return -(-nano_units // NANO)


def cpu_milli(text: str | float) -> int:
    """Return a CPU quantity in millicores, rounded up.

    Raises:
        ValueError: The text is not a quantity.
    """
    return milli(nano(text))


def size_bytes(text: str | float) -> int:
    """Return a memory or storage quantity in bytes, rounded up.

    Raises:
        ValueError: The text is not a quantity.
    """
    return ones(nano(text))
