"""Read kubeconfig files as kubectl does: several files, and a context with its cluster and user."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse.cluster.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT = "~/.kube/config"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A cluster, user or context of a kubeconfig: its fields, and its file, which relative paths refer to."""

    fields: Mapping[str, Any]
    file: Path

    def text(self, field: str) -> str | None:
        """Return the text of `FIELD-data` in base64, else of the file that `FIELD` names; None without both.

        Raises:
            ConfigError: It cannot be read.
        """
        try:
            if data := self.fields.get(f"{field}-data"):
                return base64.b64decode(str(data), validate=True).decode()
            if name := self.fields.get(field):
                return self.path(name).read_text()
        except (OSError, binascii.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{field} of the kubeconfig {self.file} cannot be read: {error}") from error
        return None

    def path(self, name: str) -> Path:
        """Return the path of a file that the kubeconfig names."""
        return self.file.parent / str(name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A context with its cluster and its user, who is anonymous if the context names none."""

    name: str
    context: Entry
    cluster: Entry
    user: Entry


def user_files() -> list[Path]:
    """Return the files that kubectl reads: those of `$KUBECONFIG`, or `~/.kube/config`; only those that exist."""
    listed = os.environ.get("KUBECONFIG") or DEFAULT
    files = (Path(name).expanduser() for name in listed.split(os.pathsep) if name)
    return [file for file in files if file.exists()]


def select(files: Sequence[Path], context: str | None = None) -> Selection:
    """Return a context of some files, by default the current one. Of entries with one name, the first file's counts.

    Raises:
        ConfigError: A file is unreadable, or the context or what it names is missing.
    """
    documents = [(file, _read(file)) for file in files]
    current = (document.get("current-context") for _, document in documents)
    wanted = str(context or next(filter(None, current), ""))
    chosen = _named(documents, "context", wanted)
    user = str(chosen.fields.get("user") or "")
    return Selection(
        name=wanted,
        context=chosen,
        cluster=_named(documents, "cluster", str(chosen.fields.get("cluster") or "")),
        user=_named(documents, "user", user) if user else Entry({}, chosen.file),
    )


def _read(file: Path) -> dict[str, Any]:
    from boathouse import bounded_yaml  # YAML is needed only for kubeconfigs

    try:
        document = bounded_yaml.load(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"the kubeconfig {file} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"the kubeconfig {file} is not a mapping")
    return document


def _named(documents: Sequence[tuple[Path, dict[str, Any]]], kind: str, name: str) -> Entry:
    listed = ((entry, file) for file, document in documents for entry in document.get(f"{kind}s") or ())
    entries = [(entry, file) for entry, file in listed if isinstance(entry, dict) and entry.get("name")]
    for entry, file in entries:
        if entry["name"] == name:
            return Entry(dict(entry.get(kind) or {}), file)
    known = ", ".join(sorted({str(entry["name"]) for entry, _ in entries})) or "none"
    where = ", ".join(str(file) for file, _ in documents)
    raise ConfigError(f"the kubeconfig {where} has no {kind} {name!r}; it has: {known}")
