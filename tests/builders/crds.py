"""The schemas of the custom resources, and the pages that document an invalid value of each field."""

from __future__ import annotations

import functools
import pathlib
import re
from typing import TYPE_CHECKING, Any

from boathouse.resources import crd
from boathouse_e2e import crd_files
from tests.spark import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

_DOCS = pathlib.Path(__file__).parents[2] / "docs/reference"
_DEFINITIONS = {definition.kind: definition for definition in crd_files.ALL}
SPARK_KUBERNETES_KEYS = [key for key in keys.read() if key.startswith(keys.PREFIX_OF_KUBERNETES)]
"""The keys for Kubernetes of all supported versions of Spark; some end with a dot."""
_KEYS_WITH_NAME = {
    "spark.kubernetes.authenticate",
    "spark.kubernetes.authenticate.driver",
    "spark.kubernetes.authenticate.driver.mounted",
    "spark.kubernetes.authenticate.executor",
    "spark.kubernetes.authenticate.submission",
    "spark.kubernetes.kerberos.dt",
}
"""The keys to which Spark adds a dot and a name."""


@functools.cache
def structural_schema(kind: str) -> dict[str, Any]:
    """Return the structural schema of a kind; tests must not change it."""
    return crd.structural_schema(_DEFINITIONS[kind].model)


def spec_schema(kind: str) -> dict[str, Any]:
    """Return the schema of a kind's spec."""
    return structural_schema(kind)["properties"]["spec"]


def schema_nodes(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Iterate over every schema below a schema."""
    yield value
    for child in value.get("properties", {}).values():
        yield from schema_nodes(child)
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            yield from schema_nodes(value[key])


def schema_rules(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the CEL rules below a schema."""
    return [rule for node in schema_nodes(value) for rule in node.get("x-kubernetes-validations", [])]


def value_fields(value: dict[str, Any], path: str = "") -> list[str]:
    """Return the paths of all fields that hold a value, without those of steps, which repeat those of the spec."""
    if value.get("type") == "array" and value["items"].get("type") == "object":
        value, path = value["items"], f"{path}[]"
    if "properties" not in value:
        return [path]
    return [
        found
        for name, child in value["properties"].items()
        for found in value_fields(child, f"{path}.{name}".lstrip("."))
        if not found.startswith("steps[].")
    ]


def field_rows(kind: str) -> list[tuple[str, str, str]]:
    """Return the rows of a kind's page of fields: field, JSON with an invalid value, and the API server's error."""
    page = (_DOCS / f"{kind.lower()}-fields.md").read_text().split("## Detected after creation")[0]
    return re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$", page, re.MULTILINE)


def complete_key(key: str) -> str:
    """Return a key of Spark's module for Kubernetes with a name where it needs one."""
    return f"{key}.x" if key in _KEYS_WITH_NAME else f"{key}x" if key.endswith(".") else key
