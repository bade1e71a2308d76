"""Figures 5 and 6: 25 jobs of Table 4 in 253 s, under all schedulers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption, Relation
from boathouse_lab.reproduce.ila import oracle, schedulers, setting, stream_pictures, sweep
from boathouse_lab.reproduce.ila.experiment import Runs, faster, row, slower, title
from boathouse_lab.reproduce.ila.programs import PAPER as ASSUMED
from boathouse_lab.reproduce.ila.stream_tasks import Tasks
from boathouse_lab.reproduce.study import Findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ila.case import Case, Seen
    from boathouse_lab.reproduce.interval import Estimate


class Stream:
    """The experiment.

    Args:
        seeds: Independent schedules.
        part: Of the maps of jobs of more than 20.
        swept: Seeds of each variant of the assumptions; 0 for no sweep.
    """

    def __init__(self, *, seeds: int, part: float = 1.0, swept: int = 0) -> None:
        self._runs = Runs(setting.Load.STREAM, seeds, part, ASSUMED)
        self._sweep = sweep.Sweep(swept, part)
        self._tasks = Tasks(self._runs, self._sweep)

    def cases(self) -> Iterable[Case]:
        """Return all schedulers as assumed; PureFair, Delay and ILA where an assumption varies."""
        for scheduler in (*schedulers.ALL, schedulers.SEEING):
            yield from self._runs.cases(scheduler)
        if self._sweep.seeds:
            yield from self._runs.cases(oracle.NAME)
            yield from self._untrained()
        yield from self._sweep.cases()

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and pictures."""
        claims = (*self._times(seen), *self._throughput(seen), *self._tasks.claims(seen))
        return Findings(claims=claims, figures=stream_pictures.pictures(self._runs, seen))

    def _untrained(self) -> tuple[Case, ...]:
        return tuple(dataclasses.replace(case, trained=False) for case in self._runs.cases(schedulers.ILA))

    def _bounds(self, seen: Mapping[Case, Seen], measure: Callable[[Seen, Seen], float]) -> tuple[Assumption, ...]:
        """Compare ILA with PureFair, with ILA without offline training, and with a scheduler that knows the truth."""
        if not self._sweep.seeds:
            return ()
        fair = [seen[case] for case in self._runs.cases(schedulers.PURE_FAIR)]
        by = {
            "ILA trained": self._runs.cases(schedulers.ILA),
            "not trained": self._untrained(),
            "told the truth": self._runs.cases(oracle.NAME),
        }
        means = {
            name: interval.mean([measure(seen[case], other) for case, other in zip(cases, fair, strict=True)]).value
            for name, cases in by.items()
        }
        said = "; ".join(f"{name}: {value:.2f}" for name, value in means.items())
        return (Assumption(name="what predicts interference", value="offline training (4.1)", effect=said),)

    def _times(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        everything = slower(setting.KINDS)
        for one in schedulers.OBLIVIOUS:
            yield row(
                f"figure-5-{one}",
                f"Job time under {title(one)} over that under ILA, mean over the ten types [×]",
                "Figure 5",
                Relation.BETWEEN,
                (1.5, 6.5),
                self._runs.over(seen, one, schedulers.ILA, everything),
                assumptions=(
                    *self._bounds(seen, lambda a, b: everything(b, a)),
                    *self._sweep.moves(seen, "×", sweep.speed_up),
                )
                if one == schedulers.PURE_FAIR
                else (),
            )
        yield from self._extremes(seen)
        yield row(
            "figure-5-iao",
            "Job time under IAO over that under ILA, mean over the ten types [×]",
            "Figure 5",
            Relation.BETWEEN,
            (1.1, 2.0),
            self._runs.over(seen, schedulers.IAO, schedulers.ILA, everything),
        )
        yield row(
            "figure-5-lao-iao",
            "Job time under LAO over that under IAO: interference costs more than distance [×]",
            "Figure 5",
            Relation.GE,
            1.0,
            self._runs.over(seen, schedulers.LAO, schedulers.IAO, everything),
        )

    def _extremes(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        pairs = [(one, kind, self._of(seen, one, kind)) for one in schedulers.OBLIVIOUS for kind in setting.KINDS]
        by_gain = sorted(pairs, key=lambda pair: pair[2].value)
        for word, (one, kind, found), paper in (
            ("least", by_gain[0], 1.5),
            ("largest", by_gain[-1], 6.5),
        ):
            yield row(
                f"figure-5-{word}",
                f"The {word} speed-up by ILA of a type of jobs over an oblivious scheduler [×]",
                "Figure 5",
                Relation.GE,
                paper,
                found,
                note=f"{kind} against {title(one)}",
            )

    def _of(self, seen: Mapping[Case, Seen], scheduler: str, kind: str) -> Estimate:
        return self._runs.over(seen, scheduler, schedulers.ILA, slower((kind,)))

    def _throughput(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        gains = {one: self._runs.over(seen, schedulers.ILA, one, faster) for one in schedulers.ALL}
        worst = max(schedulers.OBLIVIOUS, key=lambda one: gains[one].value)
        yield row(
            "figure-6-worst",
            "Throughput under ILA over that under the worst of the oblivious schedulers [×]",
            "Figure 6",
            Relation.GE,
            1.9,
            gains[worst],
            assumptions=(*self._bounds(seen, faster), *self._sweep.moves(seen, "× over PureFair", sweep.throughput)),
            note=f"against {title(worst)}",
        )
        yield row(
            "figure-6-iao",
            "Throughput under ILA over that under IAO [×]",
            "Figure 6",
            Relation.GE,
            1.3,
            gains[schedulers.IAO],
        )
