"""A job while it is made of something else, and what of that has no counterpart; by default a SparkApp."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import names
from boathouse.resources.sparkapp.status import SPARKAPP
from boathouse_cli.conversion import admission, credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse.resources.crd import CustomResource
    from boathouse_cli.conversion.carried import Carried

DRIVER: Final = "driver"
EXECUTOR: Final = "executor"
ROLES: Final = (DRIVER, EXECUTOR)
_FIRST: Final = ("type", "mainApplicationFile", "mainClass", "clusterRef", "jar", "input", "output", "arguments")
"""The fields of a spec that people read first."""


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
        would_fail: The operator would refuse the object, or Spark its settings; the last notes say why.
    """

    manifest: dict[str, Any] | None
    notes: tuple[Note, ...]
    has_failed: bool = False
    would_fail: bool = False


class Unconvertible(Exception):  # noqa: N818 - it is an answer
    """No object can be made of this; the arguments are those of a note."""

    def __init__(self, path: str, advice: str) -> None:
        super().__init__(f"{path}: {advice}")
        self.path, self.advice = path, advice


class Draft:
    """An object that is being filled in.

    Args:
        source: The document or line that is converted, for notes.
        resource: What it becomes.

    Attributes:
        metadata: Of the object.
        spec: Of the object.
        carried: Takes files of this machine along; None: they have to be where the object says.
    """

    def __init__(self, source: str, resource: CustomResource = SPARKAPP, carried: Carried | None = None) -> None:
        self.carried = carried
        self.source = source
        self._resource = resource
        self.metadata: dict[str, Any] = {}
        self.spec: dict[str, Any] = {}
        self.notes: list[Note] = []

    def note(self, path: str, advice: str) -> None:
        """Record what has no counterpart; the same note once, and without keys of a URL."""
        note = Note(source=self.source, path=credentials.hidden(path), advice=credentials.hidden(advice))
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
        """Return the object with what the operator would refuse of it, or what of it the API server would refuse."""
        credentials.take_out(self)
        fields = admission.spec_schema(self._resource)["properties"]
        manifest = {
            "apiVersion": names.API_VERSION,
            "kind": self._resource.kind,
            "metadata": self.metadata,
            "spec": {field: self.spec[field] for field in dict.fromkeys([*_FIRST, *fields]) if field in self.spec},
        }
        refused = admission.problems(self._resource, manifest)
        later = [] if refused else admission.refusals(manifest)
        for path, message in (*refused, *later):
            self.note(path, message if ": " in message else f"{message}: correct it, and convert again")
        if refused:
            return self.refuse()
        return Converted(manifest=manifest, notes=tuple(self.notes), would_fail=bool(later))

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
