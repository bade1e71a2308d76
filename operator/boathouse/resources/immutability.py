"""CEL rules for the fields of a spec that may not change after creation."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from boathouse.resources.base import RULES, rule


def with_immutability(
    *rules: dict[str, Any], always_mutable: Collection[str], mutable_while_suspended: Collection[str], noun: str = "job"
) -> Callable[[dict[str, Any]], None]:
    """Return the `json_schema_extra` of a spec with these rules, and one for each field that may not change.

    Args:
        rules: The other rules of the spec.
        always_mutable: Fields that may change at any time.
        mutable_while_suspended: Fields that may change while `spec.suspend` is true.
        noun: What messages call the object.
    """

    def apply(schema: dict[str, Any]) -> None:
        fields = [each for each in schema["properties"] if each not in always_mutable]
        schema[RULES] = [*_immutable(fields, mutable_while_suspended, noun), *rules]

    return apply


def _immutable(fields: Iterable[str], mutable_while_suspended: Collection[str], noun: str) -> list[dict[str, str]]:
    found = []
    for field in fields:
        same = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
        if field in mutable_while_suspended:
            message = f"spec.{field} can only be changed while the {noun} is suspended: set spec.suspend first"
            found.append(rule(f"oldSelf.suspend || ({same})", message))
        else:
            message = f"spec.{field} is immutable: delete and recreate the {noun}, or create one with another name"
            found.append(rule(same, message))
    return found
