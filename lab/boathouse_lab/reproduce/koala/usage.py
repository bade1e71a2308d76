"""VI.A: what Wordcount and Sort use of CPU and disks (Figure 3)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.koala.case import Case
from boathouse_lab.reproduce.koala.setting import PAPER, SORT, WORDCOUNT, Setting
from boathouse_lab.reproduce.sources import sourced
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.koala.case import Seen, Used

NODES = 20
_HIGH_CPU, _LOW_CPU, _BUSY_DISK = 0.6, 0.2, 0.5
"""Readings of "high", "very low" and "highly disk intensive": the text gives no numbers."""


@dataclasses.dataclass(frozen=True, slots=True)
class Phases:
    """What was used while maps ran, and after."""

    mapping: Sequence[Used]
    reducing: Sequence[Used]

    @classmethod
    def of(cls, seen: Seen) -> Phases:
        """Return the times of the one job of a cluster."""
        (job,) = seen.only.jobs
        began_s, mapped_s, ended_s = (ms / 1000 for ms in (job.submitted_ms, job.mapped_ms, job.ended_ms))
        return cls(
            [one for one in seen.used if began_s < one.at_s <= mapped_s],
            [one for one in seen.used if mapped_s < one.at_s <= ended_s],
        )


def _cpu(used: Sequence[Used]) -> float:
    return float(np.mean([one.cpu for one in used])) if used else 0.0


def _disk(used: Sequence[Used]) -> float:
    return float(np.mean([one.disk for one in used])) if used else 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Figure 3."""

    seeds: int

    def _cases(self, program: str) -> list[Case]:
        cluster = Setting().alone(program, 0, core=NODES)
        return [Case(clusters=(cluster,), nodes=NODES, seed=seed, every_s=1.0) for seed in range(self.seeds)]

    def cases(self) -> Iterable[Case]:
        """Return cases of 100 GB each."""
        return [*self._cases(WORDCOUNT), *self._cases(SORT)]

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and the picture."""

        def over(program: str, measure: Callable[[Phases], float]) -> Estimate:
            return interval.mean([measure(Phases.of(seen[case])) for case in self._cases(program)])

        high, low = f'("high": at least {_HIGH_CPU:.0%})', f'("very low": at most {_LOW_CPU:.0%})'
        most_disk = over(WORDCOUNT, lambda found: max(one.disk for one in [*found.mapping, *found.reducing]))
        long = over(WORDCOUNT, lambda found: len(found.mapping) / max(1, len(found.reducing)))
        rows = (
            _row(
                "wordcount-disks", "Wordcount: most that its disks are used in any second", Relation.LE, 0.4, most_disk
            ),
            _row(
                "wordcount-map-cpu",
                f"Wordcount: CPU used in its map phase {high}",
                Relation.GE,
                _HIGH_CPU,
                over(WORDCOUNT, _map_cpu),
            ),
            _row(
                "wordcount-map-longer",
                "Wordcount: map phase over reduce phase, in time",
                Relation.GE,
                1.0,
                long,
                unit="",
            ),
            _row("sort-map-cpu", "Sort: CPU used in its map phase", Relation.BETWEEN, (0.4, 0.6), over(SORT, _map_cpu)),
            _row(
                "sort-reduce-cpu",
                f"Sort: CPU used in its reduce phase {low}",
                Relation.LE,
                _LOW_CPU,
                over(SORT, _reduce_cpu),
            ),
            _row(
                "sort-reduce-disks",
                f'Sort: disks used in its reduce phase ("highly disk intensive": at least {_BUSY_DISK:.0%})',
                Relation.GE,
                _BUSY_DISK,
                over(SORT, lambda found: _disk(found.reducing)),
            ),
            _row(
                "sort-reduce-longer",
                "Sort: reduce phase over map phase, in time",
                Relation.GE,
                1.0,
                over(SORT, lambda found: len(found.reducing) / max(1, len(found.mapping))),
                unit="",
            ),
        )
        return Findings(claims=rows, figures=(self._figure(seen),))

    def _figure(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        panels = []
        for program in (WORDCOUNT, SORT):
            used = seen[self._cases(program)[0]].used
            x = tuple(one.at_s for one in used)
            panels.append(
                figures.Panel(
                    title=program.capitalize(),
                    x=figures.Axis(label="Time [s]"),
                    y=figures.Axis(label="Used [share of all nodes]", low=0),
                    marks=(
                        figures.Line(label="CPU", x=x, y=tuple(one.cpu for one in used)),
                        figures.Line(label="Disks", x=x, y=tuple(one.disk for one in used)),
                    ),
                )
            )
        sort = Phases.of(seen[self._cases(SORT)[0]])
        words = Phases.of(seen[self._cases(WORDCOUNT)[0]])
        return figures.Figure(
            name="Figure 3",
            title="CPU and disk use of Wordcount and Sort, 100 GB",
            panels=tuple(panels),
            paper_shape="Wordcount: a long map phase of high CPU, disks below 40 %. Sort: a short map phase with CPU "
            "between 40 and 60 %, then a long one of busy disks and hardly any CPU.",
            our_shape=f"Wordcount: maps use {_cpu(words.mapping):.0%} of CPU and {_disk(words.mapping):.0%} of the "
            f"disks. Sort: maps {_cpu(sort.mapping):.0%} and {_disk(sort.mapping):.0%}, reducers "
            f"{_cpu(sort.reducing):.0%} and {_disk(sort.reducing):.0%}. A map's reading may be counted beyond what the "
            "disks give while it overlaps with computing.",
        )


def _map_cpu(found: Phases) -> float:
    return _cpu(found.mapping)


def _reduce_cpu(found: Phases) -> float:
    return _cpu(found.reducing)


def _row(
    name: str, claim: str, relation: Relation, paper: float | tuple[float, float], found: Estimate, *, unit: str = "%"
) -> Claim:
    return Claim(
        **sourced(PAPER, f"figure-3-{name}"),
        claim=claim,
        figure="Figure 3",
        relation=relation,
        paper_value=paper,
        **measured(found),
        unit=unit,
        assumptions=(
            Assumption(
                name="what tasks compute",
                value="Wordcount 3 MB/s, Sort 25 MB/s a core; 2 s to start a task",
                effect="chosen so that this figure comes out: it is the calibration of the others, no test of its own",
            ),
        ),
    )
