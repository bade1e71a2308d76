"""Building blocks of the custom resources' models: CEL rules, quantities, URLs, Hadoop's settings, metav1.Condition."""

import re
from collections.abc import Collection
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

MAX_ARGUMENTS_BYTES: Final = 64 * 1024
RULES = "x-kubernetes-validations"
ATOMIC: Final[JsonDict] = {"x-kubernetes-list-type": "atomic"}


def map_list(key: str) -> JsonDict:
    """Return the `json_schema_extra` of a list whose elements are told apart by a key."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def rule(expression: str, message: str) -> dict[str, str]:
    """Return a CEL validation rule. A message in single quotes is a CEL expression, which may contain the value."""
    return {"rule": expression, "messageExpression" if message.startswith("'") else "message": message}


def for_new_objects(expression: str, message: str) -> dict[str, Any]:
    """Return a CEL rule that is checked only at creation, so that stored objects that violate it can be updated."""
    return rule(f"oldSelf.hasValue() || {expression}", message) | {"optionalOldSelf": True}


def at_most_bytes(total: str, most: int, what: str) -> dict[str, str]:
    """Return a CEL rule for a sum of lengths; `total` is a CEL expression for a list, such as `[bytes(self)]`."""
    return rule(
        f"{total}.map(part, part.size()).sum() <= {most}",
        f"{what} may have {most} bytes in total: put long texts into a file (spec.files)",
    )


def rules(*cel_rules: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    """Return the `json_schema_extra` of a field or model with CEL rules and other `x_kubernetes_...` keywords."""
    return {RULES: list(cel_rules)} | {key.replace("_", "-"): value for key, value in keywords.items()}


def holds(expression: str, message: str) -> dict[str, Any]:
    """Return the `json_schema_extra` of a field with one CEL rule."""
    return rules(rule(expression, message))


def arguments(together: str) -> JsonDict:
    """Return the `json_schema_extra` of a program's arguments, whose bytes count `together`."""
    return ATOMIC | rules(
        rule(r"self.all(each, !each.matches('\\x00'))", "arguments have no NUL: remove it"),
        rule(
            f"self.map(each, bytes(each).size()).sum() <= {MAX_ARGUMENTS_BYTES}",
            f"arguments may have {MAX_ARGUMENTS_BYTES} bytes {together}: put long texts into a file",
        ),
    )


def checked(*cel_rules: dict[str, Any]) -> pydantic.ConfigDict:
    """Return the configuration of a model with CEL rules."""
    return pydantic.ConfigDict(json_schema_extra=rules(*cel_rules))


def optional(description: str, **constraints: Any) -> Any:
    """Return a field that may be absent."""
    return Field(default=None, description=description, **constraints)


def whole(model: type["Model"], description: str | None = None, *more: JsonDict) -> Any:
    """Return a field whose default has all fields: CEL rules check a default before the fields' own ones are set."""
    extra: JsonDict = {"default": model().model_dump(by_alias=True, exclude_none=True)}
    for keywords in more:
        extra |= keywords
    return Field(default_factory=model, description=description, json_schema_extra=extra)


class Model(pydantic.BaseModel):
    """A part of a custom resource: frozen, camelCase on the wire; unknown fields are ignored."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


def quantity_schema(*checks: dict[str, str]) -> pydantic.WithJsonSchema:
    """Return the schema of a quantity with CEL rules."""
    valid = rule(
        "isQuantity(string(self))",
        "'\"' + string(self) + '\" is not a quantity: write a number such as 2, 500m or 64Mi'",
    )
    return pydantic.WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "maxLength": 32,
            RULES: [valid, *checks],
        }
    )


def at_least(minimum: str, why: str) -> dict[str, str]:
    """Return a CEL rule that a quantity is at least `minimum`."""
    return _bound(">=", minimum, f"less than {minimum}: {why}")


def at_most(maximum: str, why: str) -> dict[str, str]:
    """Return a CEL rule that a quantity is at most `maximum`."""
    return _bound("<=", maximum, f"more than {maximum}: {why}")


def _bound(comparison: str, bound: str, otherwise: str) -> dict[str, str]:
    return rule(
        f"!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('{bound}')) {comparison} 0",
        f"'\"' + string(self) + '\" is {otherwise}'",
    )


POSSIBLE = at_most("256Ti", "no node has so much; lower it")
"""More than machines have, and less than where the scheduler's amounts saturate (1Pi)."""


def amount(minimum: str, why: str, *checks: dict[str, str]) -> pydantic.WithJsonSchema:
    """Return the schema of a quantity of at least `minimum` that is possible."""
    return quantity_schema(at_least(minimum, why), POSSIBLE, *checks)


Quantity = Annotated[int | str, amount("0", "a quantity of a resource is not negative")]
Cpu = Annotated[
    int | str,
    quantity_schema(at_least("1m", "a pod needs some CPU"), at_most("1M", "no node has so many cores; lower it")),
]
MemorySize = Annotated[int | str, amount("64Mi", "the task runtime itself needs that much")]
SplitSize = Annotated[
    int | str,
    quantity_schema(
        at_least("1Ki", "smaller splits make more tasks than a cluster can hold"),
        at_most("256Ti", "no file is so large; lower it"),
    ),
]
RecordSize = Annotated[
    int | str,
    quantity_schema(at_least("1Ki", "ordinary lines are longer"), at_most("1Gi", "tasks hold records in memory")),
]

_SCHEME = rule(
    "self.startsWith('s3://') || self.startsWith('file:///')",
    "'\"' + self + '\" has no scheme that tasks can read: write s3://BUCKET/PATH (or file:///PATH)'",
)
Url = Annotated[str, Field(min_length=1, max_length=1024, json_schema_extra=rules(_SCHEME))]
DnsLabel = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
MAX_QUALIFIED_NAME = 317
"""Characters of a Kubernetes name with its prefix: 253, a slash and 63."""
SHORT_KEYS = rule(
    f"self.all(key, key.size() <= {MAX_QUALIFIED_NAME})", f"a name has at most {MAX_QUALIFIED_NAME} characters"
)
MainClass = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[A-Za-z_$][A-Za-z0-9_$.]*$")]
Key = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]


class Condition(Model):
    """metav1.Condition."""

    type: str = Field(max_length=316, description="What the condition is about; unique in the list.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(max_length=1024, description="A stable CamelCase token for programs.")
    message: str = Field(default="", max_length=32768, description="What happened and what to do.")
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})] = Field(
        description="When the status of the condition last changed."
    )
    observed_generation: int | None = optional("Value of metadata.generation that the condition is about.", ge=0)


def spec_config(
    *rules: dict[str, Any], always_mutable: Collection[str], mutable_while_suspended: Collection[str], noun: str = "job"
) -> pydantic.ConfigDict:
    """Return the configuration of a spec with these rules, and one for each field of the `noun` that may not change."""

    def immutable(field: str) -> dict[str, str]:
        same = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
        if field in mutable_while_suspended:
            message = f"spec.{field} can only be changed while the {noun} is suspended: set spec.suspend first"
            return rule(f"oldSelf.suspend || ({same})", message)
        message = f"spec.{field} is immutable: delete and recreate the {noun}, or create one with another name"
        return rule(same, message)

    def apply(schema: dict[str, Any]) -> None:
        fields = [field for field in schema["properties"] if field not in always_mutable]
        schema[RULES] = [*map(immutable, fields), *rules]

    return pydantic.ConfigDict(json_schema_extra=apply)


MAX_HADOOP_SETTINGS, MAX_HADOOP_VALUE = 256, 4096
_HADOOP_KEY: Final = "[A-Za-z0-9._-]{1,256}"
_HADOOP_KEYS = rule(
    f"self.all(key, key.matches('^{_HADOOP_KEY}$'))",
    "a setting's name has 1 to 256 letters, digits, dots, dashes and underscores",
)
_HADOOP_VALUES = rule(
    r"self.all(key, !self[key].matches('[\\x00-\\x1f\\x7f\\x{fffe}\\x{ffff}]'))",
    "values of settings have no control characters: remove them",
)
HadoopSettings = Annotated[
    dict[str, Annotated[str, Field(max_length=MAX_HADOOP_VALUE)]],
    Field(max_length=MAX_HADOOP_SETTINGS, json_schema_extra=rules(_HADOOP_KEYS, _HADOOP_VALUES)),
]
"""Settings of Hadoop; those that Boathouse sets are ignored, and a condition names them."""


def is_hadoop_setting(key: str, value: str) -> bool:
    """Return whether Hadoop can be given a setting: the rules of `Settings`."""
    return bool(re.fullmatch(_HADOOP_KEY, key)) and not re.search("[\x00-\x1f\x7f\ufffe\uffff]", value)
