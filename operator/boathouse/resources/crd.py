"""Build CustomResourceDefinitions from the models: pydantic's schemas become structural ones.

Structural schemas exclude `$ref`, `null` in addition to another type, and `title`. The conversion keeps everything
else that pydantic writes; `x-kubernetes-*` keywords come from the models' `json_schema_extra`.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pydantic

from boathouse.resources import names
from boathouse.resources.base import RULES

_REF = "#/$defs/"


def structural_schema(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """Return the structural schema of a model as JSON; raises `ValueError` if it cannot be one, as for a union."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.get("$defs", {}), path=model.__name__)


def _convert(node: Mapping[str, Any], defs: Mapping[str, Any], path: str) -> dict[str, Any]:
    node = _resolve(node, defs, path)
    dropped = {"title", "$defs", "const", "properties", "items"}
    result = {key: value for key, value in node.items() if key not in dropped}
    if "const" in node:
        result["enum"] = [node["const"]]
    if result.get("default", ...) is None:
        del result["default"]
    if isinstance(node.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _convert(node["additionalProperties"], defs, f"{path}.*")
    else:
        result.pop("additionalProperties", None)
    if "properties" in node:
        children = node["properties"].items()
        result["properties"] = {name: _convert(child, defs, f"{path}.{name}") for name, child in children}
    if "items" in node:
        result["items"] = _convert(node["items"], defs, f"{path}[]")
    if "type" not in result and not result.get("x-kubernetes-int-or-string"):
        raise ValueError(f"{path}: a structural schema needs one type here, not {dict(node)}")
    return result


def _resolve(node: Mapping[str, Any], defs: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Replace references by their schema, whose rules are kept beside overriding keywords; drop `null` alternatives."""
    merged = dict(node)
    while True:
        if "$ref" in merged:
            target = defs[merged.pop("$ref").removeprefix(_REF)]
        elif "anyOf" in merged and not merged.get("x-kubernetes-int-or-string"):
            types = [option for option in merged.pop("anyOf") if option.get("type") != "null"]
            if len(types) != 1:
                raise ValueError(f"{path}: a structural schema cannot have a union of types: {types}")
            target = types[0]
        else:
            return merged
        if RULES in target and RULES in merged:
            merged[RULES] = [*target[RULES], *merged[RULES]]
        merged = {**target, **merged}


@dataclasses.dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`. Priority 1: only with `-o wide`."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """Return the column as JSON."""
        column = {"name": self.name, "type": self.type, "jsonPath": self.json_path, "description": self.description}
        return column | ({"priority": self.priority} if self.priority else {})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """Metadata and schema model of a CRD."""

    kind: str
    plural: str
    short_names: tuple[str, ...]
    model: type[pydantic.BaseModel]
    columns: tuple[PrinterColumn, ...]

    @property
    def name(self) -> str:
        """The CRD's name."""
        return f"{self.plural}.{names.GROUP}"

    def manifest(self) -> dict[str, Any]:
        """Return the CustomResourceDefinition as JSON."""
        version = {
            "name": names.VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "schema": {"openAPIV3Schema": structural_schema(self.model)},
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": names.GROUP,
                "names": {
                    "kind": self.kind,
                    "listKind": f"{self.kind}List",
                    "plural": self.plural,
                    "singular": self.kind.lower(),
                    "shortNames": list(self.short_names),
                    "categories": ["all", "boathouse"],
                },
                "scope": "Namespaced",
                "versions": [version],
            },
        }


AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "Time since creation.", type="date")
