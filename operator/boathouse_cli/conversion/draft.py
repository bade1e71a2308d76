"""A job while it is made of something else, and what of that has no counterpart; by default a SparkApp."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import pydantic

from boathouse.resources import names
from boathouse.resources.sparkapp.names import SPARKAPP_KIND
from boathouse.resources.sparkapp.spec import SparkAppSpec
from boathouse.resources.sparkapp.status import SparkApp

if TYPE_CHECKING:
    from collections.abc import Mapping

DRIVER: Final = "driver"
EXECUTOR: Final = "executor"
ROLES: Final = (DRIVER, EXECUTOR)
_FIRST: Final = ("type", "mainApplicationFile", "mainClass", "arguments")
_FIELDS: Final = dict.fromkeys([*_FIRST, *(field.alias or name for name, field in SparkAppSpec.model_fields.items())])
"""The fields of a spec, in the order in which people read them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What the object does not have, or has otherwise.

    Attributes:
        source: The document or line that was converted.
        path: The field, option or property in it.
        advice: What to do.
    """

    source: str
    path: str
    advice: str

    @property
    def text(self) -> str:
        """Return the note in a line."""
        return f"{self.source}: {self.path}: {self.advice}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What became of one document or line.

    Attributes:
        manifest: None: it is no application, or has failed.
        has_failed: No object can be made of it; the last note says why.
    """

    manifest: dict[str, Any] | None
    notes: tuple[Note, ...]
    has_failed: bool = False


class Unconvertible(Exception):  # noqa: N818 - it is an answer
    """No object can be made of this; the arguments are those of a note."""

    def __init__(self, path: str, advice: str) -> None:
        super().__init__(f"{path}: {advice}")
        self.path, self.advice = path, advice


class Draft:
    """A SparkApp that is being filled in.

    Args:
        source: The document or line that is converted, for notes.

    Attributes:
        metadata: Of the SparkApp.
        spec: Of the SparkApp.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.metadata: dict[str, Any] = {}
        self.spec: dict[str, Any] = {}
        self.notes: list[Note] = []

    def note(self, path: str, advice: str) -> None:
        """Record what has no counterpart; the same note once."""
        note = Note(source=self.source, path=path, advice=advice)
        if note not in self.notes:
            self.notes.append(note)

    def put(self, path: str, value: Any) -> None:
        """Set a field of the spec, such as `driver.memory`."""
        *parents, last = path.split(".")
        part = self.spec
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = value

    def get(self, path: str) -> Any:
        """Return a field of the spec, None if it is absent."""
        part: Any = self.spec
        for name in path.split("."):
            part = part.get(name) if isinstance(part, dict) else None
        return part

    def merge(self, path: str, more: Mapping[str, Any]) -> None:
        """Add to a field that is a mapping."""
        if more:
            self.put(path, {**(self.get(path) or {}), **more})

    def extend(self, path: str, more: list[Any]) -> None:
        """Add to a field that is a list; an item with a known name replaces the former one."""
        if not more:
            return
        known = [each for each in self.get(path) or [] if not _has_namesake(each, more) and each not in more]
        self.put(path, [*known, *more])

    def finish(self) -> Converted:
        """Return the SparkApp, or what of it the API server would refuse."""
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": SPARKAPP_KIND,
            "metadata": self.metadata,
            "spec": self.spec,
        }
        try:
            SparkApp.model_validate(manifest)
        except pydantic.ValidationError as error:
            for each in error.errors():
                self.note(".".join(map(str, each["loc"])), f"{each['msg']}: correct it, and convert again")
            return self.refuse()
        manifest["spec"] = {field: self.spec[field] for field in _FIELDS if field in self.spec}
        return Converted(manifest=manifest, notes=tuple(self.notes))

    def refuse(self, why: Unconvertible | None = None) -> Converted:
        """Return that there is no SparkApp."""
        if why is not None:
            self.note(why.path, why.advice)
        return Converted(manifest=None, notes=tuple(self.notes), has_failed=True)

    def skip(self) -> Converted:
        """Return that it is no application."""
        return Converted(manifest=None, notes=tuple(self.notes))


def _has_namesake(item: Any, others: list[Any]) -> bool:
    return isinstance(item, dict) and "name" in item and any(item["name"] == other["name"] for other in others)
