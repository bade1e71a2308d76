"""Sets of numbers as text, `3-7,12`: short where numbers follow one another, as those of nodes do. Pure."""

import re
from collections.abc import Iterable
from typing import Annotated, Final

import pydantic

MAX_NUMBERS: Final = 700
"""More than a cluster has nodes."""
MAX_LENGTH: Final = 8192
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


def _of_status(ranges: object) -> tuple[int, ...]:
    if not isinstance(ranges, str) or len(ranges) > MAX_LENGTH:
        raise ValueError(f"ranges are a text of at most {MAX_LENGTH} characters, such as 3-7,12")
    return parse(ranges)


Ranges = Annotated[
    tuple[int, ...],
    pydantic.BeforeValidator(_of_status),
    pydantic.PlainSerializer(lambda numbers: text(numbers) or None),
    pydantic.WithJsonSchema({"type": "string", "maxLength": MAX_LENGTH}),
]
"""Numbers in a status, which has them as text."""
