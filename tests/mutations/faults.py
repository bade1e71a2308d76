"""Choose the faults of a package, the same ones each time.

A fault is chosen by a hash of the line's text, its function and the seed. So a change of one function changes no choice
elsewhere, and results of other files stay valid.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import pathlib
import sys
import tomllib
from typing import TYPE_CHECKING

from tests.coverage import recording, sources
from tests.mutations import operators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SEED = "boathouse 1"
PACKAGES = {
    "scheduling": "operator/boathouse/scheduling",
    "suspension": "operator/boathouse/suspension",
    "cluster": "operator/boathouse/cluster",
    "services": "operator/boathouse/services",
    "task": "operator/boathouse_task",
    "policies": "policies/boathouse_policies",
}
TOTAL = 200
"""Spread over the packages by lines of code; `LEAST` raises it."""
LEAST = 50
"""For each package: fewer tell nothing about it."""
PLANTED = pathlib.Path(__file__).with_name("planted.toml")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault:
    """A change of a module that a test should notice."""

    path: str
    line: int
    function: str
    family: str
    old: str
    new: str
    mutated: str
    """The module's text with the fault."""
    planted: bool = False
    """Whether it was chosen by hand."""

    @property
    def key(self) -> str:
        """What a result is kept under: it says nothing about another text of the module."""
        return recording.digest(f"{self.path}\n{self.mutated}")


def choose(package: str, root: pathlib.Path = recording.ROOT, cache: pathlib.Path | None = None) -> list[Fault]:
    """Return the faults of a package: those planted by hand, then its share of `TOTAL`, one for a line."""
    texts = {path: text for path, text in recording.modules(root).items() if path.startswith(PACKAGES[package] + "/")}
    share = shares({name: _size(root / folder) for name, folder in PACKAGES.items()})[package]
    ranked = sorted(
        (_rank(path, name, line, occurrence), path, number)
        for path, text in texts.items()
        for number, name, line, occurrence in _code_lines(sources.Module(text))
    )
    modules = {path: _Module(path, text, cache) for path, text in texts.items()}
    chosen = list(planted(texts))
    left = share
    for rank, path, number in ranked:
        if left and (fault := modules[path].fault(number, rank)):
            chosen.append(fault)
            left -= 1
    return chosen


def shares(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return how many faults each package gets."""
    whole = sum(sizes.values())
    return {name: max(LEAST, round(TOTAL * size / whole)) for name, size in sizes.items()}


def planted(texts: Mapping[str, str], file: pathlib.Path = PLANTED) -> Iterator[Fault]:
    """Yield the faults of `planted.toml` in some modules."""
    for entry in tomllib.loads(file.read_text())["fault"]:
        path, old, new = entry["file"], entry["old"], entry["new"]
        if path not in texts:
            continue
        text = texts[path]
        if text.count(old) != 1:
            raise SystemExit(f"{file.name}: {path} has this text {text.count(old)} times, not once; correct it: {old}")
        common = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        line = text[: text.index(old) + common].count("\n") + 1
        function = sources.Module(text).function(line)
        yield Fault(
            path=path, line=line, function=function.name if function else "", family="by hand",
            old=old.strip(), new=new.strip(), mutated=text.replace(old, new), planted=True,
        )  # fmt: skip


def _size(folder: pathlib.Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))


def _rank(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, (SEED, *parts))).encode()).hexdigest()


def _code_lines(module: sources.Module) -> Iterator[tuple[int, str, str, int]]:
    """Yield the lines on which code begins: number, function, text, and how often the function had this text before."""
    before: collections.Counter[tuple[str, str]] = collections.Counter()
    numbers = {node.lineno for node in ast.walk(module.tree) if isinstance(node, ast.stmt | ast.expr)}
    for number in sorted(numbers):
        function, line = module.function(number), module.lines[number - 1].strip()
        name = function.name if function else ""
        yield number, name, line, before[name, line]
        before[name, line] += 1


@functools.cache
def _generator() -> str:
    """Return what tells the present operators from others."""
    own = [pathlib.Path(module.__file__ or "").read_text() for module in (operators, sys.modules[__name__])]
    return recording.digest("".join([*own, importlib.metadata.version("mutmut")]))


class _Module:
    """A module of which some lines get a fault. Finding the changes takes a while, so they are kept by its text."""

    def __init__(self, path: str, text: str, cache: pathlib.Path | None) -> None:
        self._path, self._module, self._cache = path, sources.Module(text), cache

    @functools.cached_property
    def _changes(self) -> operators.Changes:
        return operators.Changes(self._module.text)

    def fault(self, line: int, rank: str) -> Fault | None:
        """Return the fault of a line: first one of the families it has, then one of this family's changes."""
        name = recording.digest("\n".join([_generator(), self._path, str(line), rank, self._module.text]))
        kept = self._cache / f"{name}.json" if self._cache else None
        if kept and kept.exists():
            found = json.loads(kept.read_text())
        else:
            found = self._fault(line, rank)
            if kept:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(found))
        return Fault(**found) if found else None

    def _fault(self, line: int, rank: str) -> dict[str, object] | None:
        families: dict[str, list[operators.Change]] = collections.defaultdict(list)
        for change in self._changes.found:
            if change.line == line:
                families[change.family].append(change)
        if not families:
            return None
        family = min(families, key=lambda name: _rank(rank, name))
        change = min(families[family], key=lambda change: _rank(rank, change.old, change.new))
        function = self._module.function(line)
        return {
            "path": self._path,
            "line": line,
            "function": function.name if function else "",
            "family": str(family),
            "old": change.old,
            "new": change.new,
            "mutated": self._changes.apply(change),
        }


def by_package(faults: Iterable[Fault]) -> dict[str, list[Fault]]:
    """Return faults by the name of their package."""
    found: dict[str, list[Fault]] = collections.defaultdict(list)
    for fault in faults:
        found[next(name for name, folder in PACKAGES.items() if fault.path.startswith(folder + "/"))].append(fault)
    return found
