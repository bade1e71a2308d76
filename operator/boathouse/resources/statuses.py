"""Building blocks of the kinds' statuses, and the API's RFC 3339 timestamps as epoch seconds.

A status is a frozen dataclass that is also the state that the kind's planner works on: each field is declared once,
with its bounds for the CRD, its value for the planner, and its form in JSON. `services.frame.status_codec` converts.
A field whose value is its default for "nothing" (an empty text, no elements, zero) is absent in JSON.
"""

import dataclasses
import datetime as dt
from typing import Annotated, Any, ClassVar, Final

import pydantic
from pydantic import Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from boathouse.resources.base import Condition, map_list


def about(description: str, **constraints: Any) -> Any:
    """Return what is said of a field of a status, for `Annotated`."""
    return Field(description=description, **constraints)


def rfc3339(epoch_s: float | None) -> str | None:
    """Return the UTC timestamp to the second; None stays None."""
    return None if epoch_s is None else dt.datetime.fromtimestamp(int(epoch_s), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(timestamp: str | None) -> float | None:
    """Return seconds since 1970, None for None; raises `ValueError` if the text is not a timestamp."""
    return dt.datetime.fromisoformat(timestamp).timestamp() if timestamp else None


def _alias(name: str) -> str:
    """Return the name in JSON: `start_s` is `startTime`."""
    return to_camel(f"{name.removesuffix('_s')}_time" if name.endswith("_s") else name)


def _epoch(timestamp: object) -> float:
    epoch_s = epoch(timestamp) if isinstance(timestamp, str) else None
    if epoch_s is None:
        raise ValueError("a timestamp is a text such as 2026-01-01T00:00:00Z")
    return epoch_s


def _epoch_or_none(timestamp: object) -> float | None:
    try:
        return _epoch(timestamp)
    except (ValueError, OverflowError):
        return None


ABSENT: Final = pydantic.WrapSerializer(lambda value, serialize: serialize(value) or None)
"""Marks a field that is absent in JSON if its value is empty or zero."""
_IN_JSON: Final = (
    pydantic.PlainSerializer(rfc3339),
    pydantic.WithJsonSchema({"type": "string", "format": "date-time"}),
)
Time = Annotated[float | None, pydantic.BeforeValidator(_epoch_or_none), *_IN_JSON]
"""Epoch seconds, in JSON a timestamp; None for a text that is none."""
RequiredTime = Annotated[float, pydantic.BeforeValidator(_epoch), *_IN_JSON]
"""Epoch seconds, in JSON a timestamp; the object that contains it is left out if the text is none."""
TimeOrZero = Annotated[float, pydantic.BeforeValidator(lambda text: _epoch_or_none(text) or 0.0), *_IN_JSON]
"""Epoch seconds, in JSON a timestamp; 0 for a text that is none."""
Text = Annotated[str, ABSENT]
Count = Annotated[int, pydantic.AfterValidator(lambda number: max(0, number))]
"""A number that is 0 if the status has a negative one."""
Conditions = Annotated[tuple[Condition, ...], Field(max_length=16, json_schema_extra=map_list("type"))]


class Part:
    """A dataclass of a status, whose fields have the names of `_alias` in JSON."""

    __slots__ = ()
    __pydantic_config__: ClassVar = pydantic.ConfigDict(alias_generator=_alias)


class PartWithoutDefaults(Part):
    """A part whose fields the API server leaves absent. Flags have their defaults."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema without defaults."""
        schema = handler(core)
        properties: dict[str, dict[str, Any]] = handler.resolve_ref_schema(schema).get("properties", {})
        for field in properties.values():
            if not isinstance(field.get("default"), bool):
                field.pop("default", None)
        return schema


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Status(PartWithoutDefaults):
    """What each status has, beside the phase, the conditions and their times."""

    observed_generation: Annotated[int, about("Value of metadata.generation that the status is about.")] = 0
    conditions: Conditions = ()

    def condition(self, condition_type: str) -> Condition | None:
        """Return the condition of a type, or None."""
        return next((condition for condition in self.conditions if condition.type == condition_type), None)

    def holds(self, condition_type: str) -> bool:
        """Return whether a condition is True."""
        condition = self.condition(condition_type)
        return condition is not None and condition.status == "True"
