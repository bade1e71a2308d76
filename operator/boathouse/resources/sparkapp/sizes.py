"""Sizes as Spark writes them (512m, 2g), and factors."""

from typing import Annotated, Any

from pydantic import Field

from boathouse.resources.base import rule, rules

SIZE_PATTERN = r"^[1-9][0-9]{0,8}[kKmMgGtT]([bB]|iB?)?$"
_BINARY = "quantity(self.upperAscii().replace('B', '').replace('I', '') + 'i')"
"""In CEL, a size as a quantity: all of Spark's units are binary."""
_VALID = f"self.matches('{SIZE_PATTERN}')"


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
