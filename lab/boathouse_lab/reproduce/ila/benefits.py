"""Figures 9 and 10: what each of ILA's two modules is good for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures
from boathouse_lab.reproduce.claim import Assumption, Relation
from boathouse_lab.reproduce.figures import bars
from boathouse_lab.reproduce.ila import schedulers, setting
from boathouse_lab.reproduce.ila.experiment import Runs, local, row, slower, title
from boathouse_lab.reproduce.ila.programs import PAPER as ASSUMED
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ila.case import Case, Seen


def of(name: str) -> Callable[[Seen, Seen], float]:
    """Return how many times longer the jobs of a program take in the first, whatever their size."""

    def compare(one: Seen, other: Seen) -> float:
        return slower([kind for kind in one.job_times_s if kind.startswith(f"{name}(")])(one, other)

    return compare


def spread(name: str) -> Callable[[Seen], float]:
    """Return the spread between the shortest and the longest job of a program, as a share of the shortest."""

    def measure(seen: Seen) -> float:
        times = [one for kind, some in seen.job_times_s.items() if kind.startswith(f"{name}(") for one in some]
        return max(times) / min(times) - 1

    return measure


class Isolated:
    """Figure 9: three Matrix(150) and three TeraGen(400), 15 s apart; neither reads, so only interference counts."""

    def __init__(self, *, seeds: int, part: float) -> None:
        self._runs = Runs(setting.Load.ISOLATED, seeds, part, ASSUMED)

    def cases(self) -> Iterable[Case]:
        """Return all schedulers."""
        for scheduler in schedulers.ALL:
            yield from self._runs.cases(scheduler)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and the picture."""
        return Findings(claims=tuple(self._claims(seen)), figures=(self._picture(seen),))

    def _claims(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        for name in _ISOLATED:
            found = {one: self._runs.over(seen, one, schedulers.ILA, of(name)) for one in schedulers.OBLIVIOUS}
            for one in (schedulers.PURE_FAIR, schedulers.LATE, schedulers.CAPACITY):
                yield row(
                    f"figure-9-{name.lower()}-{one}",
                    f"Time of {name} jobs under {title(one)} over that under ILA [×]",
                    "Figure 9",
                    Relation.BETWEEN,
                    (2.0, 3.0),
                    found[one],
                )
            yield row(
                f"figure-9-{name.lower()}-apart",
                f"How far times of {name} jobs under ILA lie apart",
                "Figure 9",
                Relation.LE,
                0.18,
                self._runs.mean(seen, schedulers.ILA, spread(name)),
                share=True,
                baseline=("PureFair: the same", self._runs.mean(seen, schedulers.PURE_FAIR, spread(name))),
            )
        alike = self._runs.over(seen, schedulers.ILA, schedulers.IAO, lambda a, b: a.makespan_s / b.makespan_s)
        yield row(
            "figure-9-ila-iao",
            "Without input ILA and IAO are one: makespan under ILA over that under IAO [×]",
            "Figure 9",
            Relation.EQ,
            1.0,
            alike,
            tolerance=0.05,
        )

    def _picture(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        shown = [one for one in schedulers.ALL if one != schedulers.ILA]
        panel = figures.Panel(
            title="Jobs without input",
            x=figures.Axis(label="Program"),
            y=figures.Axis(label="Job time over that under ILA", low=0),
            categories=_ISOLATED,
            marks=(
                *(
                    bars(title(one), [self._runs.over(seen, one, schedulers.ILA, of(name)) for name in _ISOLATED])
                    for one in shown
                ),
                figures.Level(label="the paper: 2 to 3", at=2.0, paper=True),
                figures.Level(label="the paper: 2 to 3", at=3.0, paper=True),
            ),
        )
        fair = [self._runs.over(seen, schedulers.PURE_FAIR, schedulers.ILA, of(name)).value for name in _ISOLATED]
        said = ", ".join(f"{name} {value:.1f}" for name, value in zip(_ISOLATED, fair, strict=True))
        return figures.Figure(
            name="Figure 9",
            title="Interference alone: three Matrix and three TeraGen jobs",
            panels=(panel,),
            paper_shape="2 to 3 times longer under all oblivious schedulers; ILA and IAO are the same.",
            our_shape=f"PureFair: {said} times as long as ILA.",
        )


_ISOLATED = ("Matrix", "TeraGen")


class Calm:
    """Figure 10: three MGrep(350) and three MPiEst(100), made so that neighbours are not in each other's way."""

    def __init__(self, *, seeds: int, part: float, replicas: tuple[int, ...] = ()) -> None:
        self._runs = Runs(setting.Load.CALM, seeds, part, ASSUMED)
        self._grep, self._pi = (f"M{name}({round(size * part)})" for name, size in (("Grep", 350), ("PiEst", 100)))
        self._replicas = {
            count: Runs(setting.Load.CALM, min(seeds, 3), part, dataclasses.replace(ASSUMED, replicas=count))
            for count in replicas
        }

    def cases(self) -> Iterable[Case]:
        """Return all schedulers; the greedy one with other numbers of replicas."""
        for scheduler in schedulers.ALL:
            yield from self._runs.cases(scheduler)
        for runs in self._replicas.values():
            for scheduler in (schedulers.PURE_FAIR, schedulers.DELAY):
                yield from runs.cases(scheduler)

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Return rows and the picture."""
        return Findings(claims=tuple(self._claims(seen)), figures=(self._picture(seen),))

    def _claims(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        yield from self._shares(seen)
        yield from self._times(seen)

    def _shares(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        wanted = (
            (schedulers.ILA, self._grep, Relation.GE, 0.95, 0.0),
            (schedulers.LAO, self._grep, Relation.GE, 0.95, 0.0),
            (schedulers.PURE_FAIR, self._grep, Relation.LE, 0.58, 0.0),
            (schedulers.DELAY, self._grep, Relation.EQ, 0.90, 0.05),
            (schedulers.ILA, self._pi, Relation.EQ, 0.80, 0.1),
            (schedulers.PURE_FAIR, self._pi, Relation.EQ, 0.50, 0.1),
            (schedulers.DELAY, self._pi, Relation.EQ, 0.95, 0.05),
        )
        for one, kind, relation, paper, tolerance in wanted:
            program = kind.split("(")[0]
            yield row(
                f"figure-10-local-{program.lower()}-{one}",
                f"{program}: maps with local input under {title(one)}",
                "Figure 10",
                relation,
                paper,
                self._runs.mean(seen, one, local((kind,))),
                share=True,
                tolerance=tolerance,
                assumptions=self._moves(seen, one, kind),
            )

    def _moves(self, seen: Mapping[Case, Seen], scheduler: str, kind: str) -> tuple[Assumption, ...]:
        if scheduler not in (schedulers.PURE_FAIR, schedulers.DELAY) or not self._replicas:
            return ()
        by_count = {count: runs.mean(seen, scheduler, local((kind,))).value for count, runs in self._replicas.items()}
        said = "; ".join(f"{count}: {per_cent(value)}" for count, value in by_count.items())
        return (Assumption(name="replicas of a block", value=ASSUMED.replicas, effect=said),)

    def _times(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        for one, name, relation, paper, tolerance in (
            (schedulers.PURE_FAIR, "MGrep", Relation.EQ, 1.8, 0.2),
            (schedulers.DELAY, "MGrep", Relation.GE, 1.23, 0.0),
            (schedulers.DELAY, "MPiEst", Relation.EQ, 1.3, 0.1),
        ):
            lao = self._runs.over(seen, one, schedulers.LAO, of(name))
            yield row(
                f"figure-10-time-{name.lower()}-{one}",
                f"Time of {name} jobs under {title(one)} over that under ILA [×]",
                "Figure 10",
                relation,
                paper,
                self._runs.over(seen, one, schedulers.ILA, of(name)),
                tolerance=tolerance,
                assumptions=(
                    Assumption(name="module", value="ILA", effect=f"over LAO, which is LASM alone: {lao.value:.2f}"),
                ),
            )

    def _picture(self, seen: Mapping[Case, Seen]) -> figures.Figure:
        shown, names, kinds = schedulers.ALL, ("MGrep", "MPiEst"), (self._grep, self._pi)
        times = figures.Panel(
            title="Job time",
            x=figures.Axis(label="Program"),
            y=figures.Axis(label="Job time over that under ILA", low=0),
            categories=names,
            marks=tuple(
                bars(title(one), [self._runs.over(seen, one, schedulers.ILA, of(name)) for name in names])
                for one in shown
            ),
        )
        shares = figures.Panel(
            title="Local maps",
            x=figures.Axis(label="Program"),
            y=figures.Axis(label="Share of maps with local input", low=0, high=1),
            categories=names,
            marks=tuple(
                bars(title(one), [self._runs.mean(seen, one, local((kind,))) for kind in kinds]) for one in shown
            ),
        )
        said = ", ".join(
            f"{title(one)} {per_cent(self._runs.mean(seen, one, local((self._grep,))).value)}"
            for one in (schedulers.ILA, schedulers.DELAY, schedulers.PURE_FAIR)
        )
        return figures.Figure(
            name="Figure 10",
            title="Locality alone: jobs that are not in each other's way",
            panels=(times, shares),
            paper_shape="MGrep local: nearly 100 % with LASM, 90 % Delay, 58 % greedy, which is 1.8 times slower.",
            our_shape=f"MGrep local: {said}.",
        )
