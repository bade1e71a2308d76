"""Sizes as Spark writes them (512m, 2g), and factors."""

from typing import Annotated, Any

from pydantic import Field

from boathouse.resources.base import rule, rules

SIZE_PATTERN = r"^[1-9][0-9]{0,8}[kKmMgGtT]([bB]|iB?)?$"


def binary(path: str) -> str:
    """Return a size as a quantity, in CEL: all of Spark's units are binary."""
    return f"quantity({path}.upperAscii().replace('B', '').replace('I', '') + 'i')"


def is_size(path: str) -> str:
    """Return the CEL expression for whether a text is a size."""
    return f"{path}.matches('{SIZE_PATTERN}')"


_BINARY = binary("self")
_VALID = is_size("self")


def _size(minimum: str, why: str) -> Any:
    return Field(
        max_length=16,
        json_schema_extra=rules(
            rule(_VALID, "'\"' + self + '\" is not a size: write a whole number with a unit, such as 512m, 2g or 2Gi'"),
            rule(
                f"!{_VALID} || {_BINARY}.compareTo(quantity('{minimum}')) >= 0",
                f"'\"' + self + '\" is less than {minimum}: {why}'",
            ),
            rule(
                f"!{_VALID} || {_BINARY}.compareTo(quantity('256Ti')) <= 0",
                "'\"' + self + '\" is more than 256Ti: no node has so much; lower it'",
            ),
        ),
    )


HeapSize = Annotated[str, _size("450Mi", "Spark does not start with less memory")]
"""The heap of a driver or an executor."""
Size = Annotated[str, _size("1Mi", "Spark counts in MiB")]
OverheadFactor = Annotated[
    str,
    Field(
        max_length=10,
        pattern=r"^([1-9][0-9]?|0[.]0*[1-9][0-9]*|[1-9][0-9]?[.][0-9]+)$",
        description='A part of the memory, such as "0.2", for what is not on the heap.',
    ),
]
