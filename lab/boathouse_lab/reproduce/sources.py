"""What papers say: a catalogue of each study's claims by id, with sentence, line, class, and why a claim fails."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from importlib import resources
from typing import TYPE_CHECKING, Any

from boathouse_lab.reproduce.claim import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a claim comes from; see the fields of the same names of `Claim`."""

    sentence: str
    line: int | None
    kind: Kind
    calibrated: bool
    explanation: str = ""
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All claims of a study's full form.

    Attributes:
        text: File name of the text of the paper whose lines are counted; empty if there is no paper.
        sources: By id, in the order of the file.
    """

    text: str
    sources: Mapping[str, Source]


@functools.cache
def catalogue(study: str) -> Catalogue:
    """Read a study's catalogue.

    Raises:
        ValueError: An id is listed twice, or calibrated but not listed.
    """
    file = resources.files("boathouse_lab.reproduce") / "catalogues" / f"{study}.toml"
    return parsed(study, tomllib.loads(file.read_text(encoding="utf-8")))


def parsed(study: str, content: Mapping[str, Any]) -> Catalogue:
    """Return the catalogue of a parsed file: for each sentence ids by class, without the study's name.

    Raises:
        ValueError: An id is listed twice, or calibrated or explained but not listed.
    """
    sources: dict[str, Source] = {}
    calibrated = set(content.get("calibrated", ()))
    for name, source in _listed(content):
        if name in sources:
            raise ValueError(f"{study}: the catalogue lists {name} twice")
        sources[name] = dataclasses.replace(source, calibrated=name in calibrated)
    if unknown := calibrated - set(sources):
        raise ValueError(f"{study}: calibrated, but without a sentence: {', '.join(sorted(unknown))}")
    for given in content.get("explanation", ()):
        for field, names in (("explanation", given.get("rows", ())), ("note", given.get("always", ()))):
            for name in names:
                if name not in sources:
                    raise ValueError(f"{study}: explained, but without a sentence: {name}")
                sources[name] = dataclasses.replace(sources[name], **{field: given["text"]})
    return Catalogue(text=content["text"], sources={f"{study}-{name}": one for name, one in sources.items()})


def _listed(content: Mapping[str, Any]) -> Iterator[tuple[str, Source]]:
    for one in content.get("sentence", ()):
        for kind in Kind:
            yield from _of(one.get(kind.value, ()), one["words"], one["line"], kind)
    yield from _of(content.get(Kind.NOT_IN_THE_PAPER.value, ()), "", None, Kind.NOT_IN_THE_PAPER)


def _of(names: Iterable[str], sentence: str, line: int | None, kind: Kind) -> Iterator[tuple[str, Source]]:
    source = Source(sentence=sentence, line=line, kind=kind, calibrated=False)
    return ((name, source) for name in names)


def sourced(study: str, name: str) -> dict[str, Any]:
    """Return the fields of a claim from its study's catalogue: `Claim(**sourced("fspy", "r2-map"), ...)`.

    Raises:
        KeyError: The catalogue does not list it.
    """
    key = f"{study}-{name}"
    source = catalogue(study).sources[key]
    return {
        "paper": study,
        "id": key,
        "sentence": source.sentence,
        "line": source.line,
        "kind": source.kind,
        "calibrated": source.calibrated,
        "explanation": source.explanation,
        "note": source.note,
    }
