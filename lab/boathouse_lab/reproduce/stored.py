"""What a study's run found, as a file of `docs/policies/figures`."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from boathouse_lab.reproduce.sources import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.study import Scale, Study


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A run.

    Attributes:
        study: Its name.
        title: The paper's citation.
        text: The text of the paper whose lines are counted.
        source: What gave the rows: the command and its form.
        seeds: Independent runs.
        assumptions: All assumptions of the rows, each of them once.
        rows: As `Claim.as_json`, with places in `assumptions` instead of assumptions.
    """

    study: str
    title: str
    text: str
    source: str
    seeds: int
    assumptions: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, study: Study, scale: Scale, claims: Sequence[Claim]) -> Stored:
        """Return a run with its assumptions listed once.

        Raises:
            ValueError: Two rows have one id or one text.
        """
        if twice := repeated(claim.id for claim in claims) + repeated(claim.claim for claim in claims):
            raise ValueError(f"{study.paper}: two rows have one id or one text: {'; '.join(twice)}")
        places = {
            one: place for place, one in enumerate(dict.fromkeys(one for row in claims for one in row.assumptions))
        }
        return cls(
            study=study.paper,
            title=study.title,
            text=catalogue(study.paper).text,
            source=f"boathouse reproduce {study.paper}, {scale.form.value} form",
            seeds=scale.seeds,
            assumptions=[dataclasses.asdict(one) for one in places],
            rows=[row.as_json() | {"assumptions": [places[one] for one in row.assumptions]} for row in claims],
        )

    @classmethod
    def parsed(cls, content: str) -> Stored:
        """Return what a file holds."""
        return cls(**json.loads(content))

    def as_text(self) -> str:
        """Return the content of a file, with one row a line."""
        head = {name: getattr(self, name) for name in ("study", "title", "text", "source", "seeds")}
        lines = [f"{json.dumps(name)}: {_dumped(value)}" for name, value in head.items()]
        lines += [f'"assumptions": {_listed(self.assumptions)}', f'"rows": {_listed(self.rows)}']
        return "{\n" + ",\n".join(lines) + "\n}\n"


def repeated(values: Iterable[str]) -> list[str]:
    """Return the values that occur more than once, in order."""
    found = list(values)
    return [one for one in dict.fromkeys(found) if found.count(one) > 1]


def _listed(values: Sequence[Mapping[str, Any]]) -> str:
    return "[\n" + ",\n".join(_dumped(one) for one in values) + "\n]" if values else "[]"


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
