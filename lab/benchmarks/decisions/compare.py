"""Compare two recordings: where decisions differ first, and by how much measures do."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from typing import TYPE_CHECKING

from typing_extensions import override

from . import journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

KINDS = {
    "d": "decisions",
    "p": "pending",
    "e": "explanations",
    "s": "what was learned",
    "c": "cycles",
}
TOLERANCE = 0.005
_NOTHING = "(nothing more)"


@dataclasses.dataclass(frozen=True, slots=True)
class Divergence:
    """The first record of a kind that differs in a run.

    Attributes:
        run: Its run.
        kind: Of record.
        place: Its number among the records of that kind, from 1.
        ours: It.
        theirs: What the other recording has there.
    """

    run: str
    kind: str
    place: int
    ours: str
    theirs: str

    @override
    def __str__(self) -> str:
        """Return both records, below the place."""
        where = f"run {self.run}: {KINDS[self.kind]} differ first at number {self.place}"
        return f"{where}\n    a: {self.ours}\n    b: {self.theirs}"


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """One scenario of two recordings.

    Attributes:
        name: Of the scenario.
        runs: How many runs the first recording has.
        divergences: The first of each kind in each run that differs.
        missing: Runs that only one recording has.
        changes: The relative difference of each measure's mean over the runs.
        only_in: The recording that has the scenario, "a" or "b", if the other has none of its runs.
    """

    name: str
    runs: int
    divergences: tuple[Divergence, ...]
    missing: tuple[str, ...]
    changes: Mapping[str, float]
    only_in: str = ""

    @property
    def equal(self) -> bool:
        """Whether everything is equal."""
        return not self.divergences and not self.missing and not any(self.changes.values())

    @property
    def worst(self) -> float:
        """The largest relative difference of a measure's mean."""
        return max(self.changes.values(), default=0.0)

    @property
    def tolerable(self) -> bool:
        """Whether all means are within the tolerance, and no run is missing."""
        return not self.missing and self.worst <= TOLERANCE


def scenarios(
    name: str, a: Mapping[str, journal.Run], b: Mapping[str, journal.Run], *, common: bool = False
) -> Comparison:
    """Compare the runs of one scenario; with `common` only those that both recordings have."""
    if common:
        a, b = ({run: these[run] for run in these if run in others} for these, others in ((a, b), (b, a)))
    both = [run for run in a if run in b]
    divergences = [one for run in both for kind in KINDS if (one := _first(a[run], b[run], kind)) is not None]
    missing = tuple(sorted(a.keys() ^ b.keys()))
    if missing and not (a and b):
        return Comparison(name, len(a), (), missing, {}, only_in="a" if a else "b")
    return Comparison(name, len(a), tuple(divergences), missing, _changes(a.values(), b.values()))


def _first(a: journal.Run, b: journal.Run, kind: str) -> Divergence | None:
    ours, theirs = a.of(kind), b.of(kind)
    if ours == theirs:
        return None
    pairs = itertools.zip_longest(ours, theirs, fillvalue=_NOTHING)
    place, (one, other) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    return Divergence(a.name, kind, place, one, other)


def _changes(a: Iterable[journal.Run], b: Iterable[journal.Run]) -> dict[str, float]:
    before, after = _means(a), _means(b)
    return {name: _change(before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())}


def _means(runs: Iterable[journal.Run]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.measures.items():
            values.setdefault(name, []).append(value)
    return {name: statistics.fmean(found) for name, found in values.items()}


def _change(before: float | None, after: float | None) -> float:
    if before is None or after is None:
        return math.inf
    if before == after or (math.isnan(before) and math.isnan(after)):
        return 0.0
    return abs(after - before) / abs(before) if before and math.isfinite(before) else math.inf


def folders(a: Path, b: Path, *, common: bool = False) -> Iterable[Comparison]:
    """Compare all scenarios of two folders; one that a folder lacks has all its runs missing."""
    names = sorted({_name(path, folder) for folder in (a, b) for path in folder.rglob(f"*{journal.SUFFIX}")})
    for name in names:
        one, other = (_runs(folder / f"{name}{journal.SUFFIX}") for folder in (a, b))
        yield scenarios(name, one, other, common=common)


def _name(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)).removesuffix(journal.SUFFIX)


def _runs(path: Path) -> Mapping[str, journal.Run]:
    return journal.read(path) if path.exists() else {}


def lines(found: Comparison, *, most: int) -> Sequence[str]:
    """Return what is said of one scenario.

    Args:
        found: It.
        most: Most divergences that are shown.
    """
    if found.equal:
        return [f"{found.name}: equal ({found.runs} runs)"]
    if found.only_in:
        return [f"only in {found.only_in}: {found.name}"]
    counts = {kind: sum(one.kind == kind for one in found.divergences) for kind in KINDS}
    said = ", ".join(f"{KINDS[kind]} differ in {count}" for kind, count in counts.items() if count)
    text = [f"{found.name}: {said or 'records are equal'} of {found.runs} runs; means by up to {found.worst:.3%}"]
    if found.missing:
        text.append(f"  only in one recording: {', '.join(found.missing[:most])} ({len(found.missing)} in all)")
    text += [f"  {one}" for one in found.divergences[:most]]
    text += [f"  {name}: {change:.3%}" for name, change in found.changes.items() if change > TOLERANCE]
    return text
