"""Sets of numbers as text, `3-7,12`: short where numbers follow one another, as those of nodes do. Pure."""

import re
from collections.abc import Iterable
from typing import Final

MAX_NUMBERS: Final = 700
"""More than a cluster has nodes."""
_RANGE: Final = re.compile(r"(?P<first>[0-9]{1,10})(-(?P<last>[0-9]{1,10}))?")


def text(numbers: Iterable[int]) -> str:
    """Return the numbers as text."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def parse(ranges: str) -> tuple[int, ...]:
    """Return the numbers of a text, sorted; parts that are no ranges are left out, and numbers beyond `MAX_NUMBERS`."""
    numbers: set[int] = set()
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match:
            first = int(match["first"])
            last = int(match["last"] or first)
            numbers.update(range(first, min(last, first + MAX_NUMBERS) + 1))
    return tuple(sorted(numbers)[:MAX_NUMBERS])
