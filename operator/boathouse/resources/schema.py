"""Convert a pydantic model to the structural schema of a CustomResourceDefinition.

Structural schemas exclude `$ref`, `null` in addition to another type, and `title`. The conversion keeps everything
else that pydantic writes; `x-kubernetes-*` keywords come from the models' `json_schema_extra`.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from collections.abc import Mapping
from typing import Any

import pydantic

_REF = "#/$defs/"


def structural(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """Return the structural schema of `model`, as a JSON value.

    Raises:
        ValueError: The model uses something that structural schemas cannot express, such as a union of two types.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.get("$defs", {}), path=model.__name__)


def _convert(node: Mapping[str, Any], defs: Mapping[str, Any], path: str) -> dict[str, Any]:
    node = _resolve(node, defs, path)
    result = {
        key: value for key, value in node.items() if key not in {"title", "$defs", "const", "properties", "items"}
    }
    if "const" in node:
        result["enum"] = [node["const"]]
    if result.get("default", ...) is None:
        del result["default"]
    if isinstance(node.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _convert(node["additionalProperties"], defs, f"{path}.*")
    else:
        result.pop("additionalProperties", None)
    if "properties" in node:
        result["properties"] = {
            name: _convert(child, defs, f"{path}.{name}") for name, child in node["properties"].items()
        }
    if "items" in node:
        result["items"] = _convert(node["items"], defs, f"{path}[]")
    if "type" not in result and not result.get("x-kubernetes-int-or-string"):
        raise ValueError(f"{path}: a structural schema needs one type here, not {dict(node)}")
    return result


def _resolve(node: Mapping[str, Any], defs: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Replace references by their schema, merge keywords next to a reference, and drop `null` alternatives."""
    merged = dict(node)
    while True:
        if "$ref" in merged:
            target = defs[merged.pop("$ref").removeprefix(_REF)]
        elif "anyOf" in merged and not merged.get("x-kubernetes-int-or-string"):
            others = [option for option in merged.pop("anyOf") if option.get("type") != "null"]
            if len(others) != 1:
                raise ValueError(f"{path}: a structural schema cannot have a union of types: {others}")
            target = others[0]
        else:
            return merged
        merged = _join(target, merged)


def _join(target: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a referenced schema with the keywords next to the reference, which override it; rules of both are kept."""
    rules = "x-kubernetes-validations"
    joined = {**target, **beside}
    if rules in target and rules in beside:
        joined[rules] = [*target[rules], *beside[rules]]
    return joined
