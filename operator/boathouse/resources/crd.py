"""Build CustomResourceDefinitions from the models."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pydantic

from boathouse.resources import names, schema


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
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
                "versions": [self._version()],
            },
        }

    def _version(self) -> Mapping[str, Any]:
        return {
            "name": names.VERSION,
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "additionalPrinterColumns": [column.manifest() for column in self.columns],
            "schema": {"openAPIV3Schema": schema.structural(self.model)},
        }


AGE = PrinterColumn(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since creation."
)
