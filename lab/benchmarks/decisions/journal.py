"""Format of a recording: a gzip-compressed text file for each scenario, with one record per line.

| first word | record |
|---|---|
| run | name of the run: the records up to the next run are its own |
| d | a decision: time, kind, task or class, node, amounts, and what else the kind has |
| p | a class whose pending tasks changed in number or in reason: time, class, code, count |
| c | a cycle: time, number of decisions, classes left pending, hash of these with code and count |
| e | an explanation that changed: time, class, the diagnosis as users read it |
| m | a measure at the end of a run: name, value |
| s | what the observers of a run know at its end: hash |
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import io
from typing import TYPE_CHECKING, TextIO

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SUFFIX = ".txt.gz"


@dataclasses.dataclass(frozen=True, slots=True)
class Pending:
    """Tasks of a class that a cycle left pending."""

    task_class: str
    code: str
    count: int


class Journal:
    """Writes one scenario.

    Args:
        text: Where.
    """

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._pending: dict[str, Pending] = {}
        self._explained: dict[str, str] = {}
        self.lines = 0

    def _write(self, kind: str, *fields: object) -> None:
        self._text.write(" ".join((kind, *map(str, fields))) + "\n")
        self.lines += 1

    def begin(self, run: str) -> None:
        """Begin a run: what was known of pending classes is forgotten."""
        self._pending.clear()
        self._explained.clear()
        self._write("run", run)

    def cycle(self, now_s: float, decisions: Sequence[model.Decision], left: Iterable[Pending] | None) -> None:
        """Write what a cycle decided and, unless `left` is None, what it left pending."""
        for decision in decisions:
            self._write("d", f"{now_s:.6f}", *fields_of(decision))
        if left is None:
            self._write("c", f"{now_s:.6f}", len(decisions))
            return
        ordered = sorted(left, key=lambda one: one.task_class)
        digest = hashlib.blake2b(repr(ordered).encode(), digest_size=4).hexdigest()
        self._write("c", f"{now_s:.6f}", len(decisions), len(ordered), digest)
        for one in ordered:
            if self._pending.get(one.task_class) != one:
                self._pending[one.task_class] = one
                self._write("p", f"{now_s:.6f}", one.task_class, one.code, one.count)

    def explain(self, now_s: float, diagnoses: Iterable[model.Diagnosis]) -> None:
        """Write the diagnoses that differ from the last ones of their classes."""
        for one in sorted(diagnoses, key=lambda one: one.task_class):
            text = _explanation(one)
            if self._explained.get(one.task_class) != text:
                self._explained[one.task_class] = text
                self._write("e", f"{now_s:.6f}", one.task_class, text)

    def measure(self, name: str, value: float) -> None:
        """Write a number that may differ a little in another recording."""
        self._write("m", name.replace(" ", "_"), repr(float(value)))

    def state(self, text: str) -> None:
        """Write the hash of what observers know."""
        self._write("s", hashlib.blake2b(text.encode(), digest_size=8).hexdigest())


def fields_of(decision: model.Decision) -> Iterator[object]:
    """Yield the fields of a decision, without the words of its reason."""
    is_pending = isinstance(decision, model.Reservation | model.Wait)
    yield "Hold" if is_pending else type(decision).__name__  # recordings of earlier commits have one name for both
    match decision:
        case model.Create() | model.Bind():
            yield from (decision.task.id, decision.node, *_amounts(decision.resources), int(decision.distance))
        case model.Wait():
            yield from (decision.task_class.id, decision.verdict.code, "-", _time(decision.until_s))
        case model.Reservation():
            yield from (decision.task_class.id, decision.verdict.code, decision.node, _time(decision.until_s))
            if decision.task is not None and decision.resources is not None:
                yield from (decision.task.id, *_amounts(decision.resources))
        case model.Suspend():
            yield from (decision.task.id, decision.node, *_amounts(decision.resources), _time(decision.until_s))
        case model.Resize() | model.Resume():
            yield from (decision.task.id, decision.node, *_amounts(decision.resources))
        case model.Scale():
            yield from (decision.job, decision.workers, decision.stores)
        case model.Speculate():
            yield from (decision.task.id, decision.attempt, decision.node, *_amounts(decision.resources))


def _amounts(resources: model.Resources) -> Iterator[object]:
    yield resources.cpu_milli
    yield resources.memory_bytes
    if resources.ephemeral_storage_bytes or resources.extended:
        yield resources.ephemeral_storage_bytes
        yield ",".join(f"{name}={count}" for name, count in resources.extended) or "-"


def _time(time_s: float | None) -> str:
    return "-" if time_s is None else f"{time_s:.6f}"


def _explanation(one: model.Diagnosis) -> str:
    return f"{one.code} {one.count} {one.scarce or '-'} {one.asked} {one.largest} {one.message}"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Journal]:
    """Open a scenario's file to write; equal content gives equal bytes. What fails leaves no file behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    with (
        unfinished.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=3, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8") as text,
    ):
        yield Journal(text)
    unfinished.replace(path)


@dataclasses.dataclass(slots=True)
class Run:
    """One run of a recording, its records by kind."""

    name: str
    records: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def of(self, kind: str) -> list[str]:
        """Return the records of a kind, in order."""
        return self.records.get(kind, [])

    @property
    def measures(self) -> dict[str, float]:
        """The measures by name."""
        pairs = (record.split(" ") for record in self.of("m"))
        return {name: float(value) for name, value in pairs}


def read(path: Path) -> dict[str, Run]:
    """Read a scenario's runs, by name.

    Raises:
        OSError: The file cannot be read.
    """
    with gzip.open(path, "rt") as text:
        return parse(text)


def parse(lines: Iterable[str]) -> dict[str, Run]:
    """Read runs from lines."""
    runs: dict[str, Run] = {}
    run = Run("")
    for line in lines:
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "run":
            run = runs[rest] = Run(rest)
        else:
            run.records.setdefault(kind, []).append(rest)
    return runs
