"""CustomResourceDefinitions from the models."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pydantic

from boathouse.resources import names, schema
from boathouse.resources.mrjob import status as mrjob_status


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PrinterColumn:
    """A column of `kubectl get`; priority 1 shows only with `-o wide`."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    priority: int = 0

    def manifest(self) -> dict[str, Any]:
        """The column as the API server takes it."""
        column = {"name": self.name, "type": self.type, "jsonPath": self.json_path, "description": self.description}
        return column | ({"priority": self.priority} if self.priority else {})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """What a CRD says beside its schema."""

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
        """The CustomResourceDefinition as a JSON value."""
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


_AGE = PrinterColumn(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since creation."
)

MRJOB = CustomResource(
    kind=names.MRJOB_KIND,
    plural=names.MRJOB_PLURAL,
    short_names=("mrj",),
    model=mrjob_status.MRJob,
    columns=(
        PrinterColumn(name="Phase", json_path=".status.phase", description="Where the job is."),
        PrinterColumn(name="Queue", json_path=".status.queue", description="The queue the job is in."),
        PrinterColumn(name="%", type="integer", json_path=".status.progressPercent", description="How far the job is."),
        PrinterColumn(name="Progress", json_path=".status.progress", description="Tasks done, of all."),
        PrinterColumn(
            name="Reason", json_path=".status.reason", description="Why the job is pending or failed.", priority=1
        ),
        PrinterColumn(
            name="Failures",
            type="integer",
            json_path=".status.failures.user",
            description="Attempts that failed.",
            priority=1,
        ),
        _AGE,
    ),
)
ALL = (MRJOB,)
