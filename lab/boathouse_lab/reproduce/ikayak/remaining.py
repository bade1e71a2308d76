"""Section 5.3: how well remaining times of reducers are predicted (Figure 9a)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import figures, interval
from boathouse_lab.reproduce.claim import Assumption, Relation
from boathouse_lab.reproduce.ikayak import predicting, rows
from boathouse_lab.reproduce.study import Findings
from boathouse_lab.reproduce.words import per_cent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ikayak.predicting import Accuracy, Trial
    from boathouse_lab.reproduce.study import Runner

    Seen = Mapping[Trial, Accuracy]

_PAPER_NRMSE = 0.078


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """The fuzzy model beside two simple predictors.

    Attributes:
        seeds: Independent runs.
        jobs: Of each program, in a run.
    """

    seeds: int
    jobs: int

    def findings(self, runner: Runner) -> Findings:
        """Return Figure 9a."""
        trials = predicting.trials(self.seeds, jobs=self.jobs)
        seen = dict(zip(trials, runner.map(rows.PAPER, predicting.predict, trials), strict=True))
        return Findings(claims=tuple(self._claims(seen)), figures=(self._figure(seen),))

    @staticmethod
    def _of(seen: Seen, noise: float, skew: float) -> Sequence[Accuracy]:
        return [found for trial, found in seen.items() if (trial.noise, trial.skew) == (noise, skew)]

    def _claims(self, seen: Seen) -> Iterable[Claim]:
        middle = self._of(seen, _NOISE, _SKEW)
        effects = (
            Assumption(name="noise of task times", value=_NOISE, effect=self._by(seen, noises=predicting.NOISES)),
            Assumption(name="skew of reducers' input", value=_SKEW, effect=self._by(seen, skews=predicting.SKEWS)),
        )
        yield rows.row(
            "figure-9a-half",
            "NRMSE of predicted remaining times, held-out reducers, one sample of each at its half",
            "Figure 9a",
            _PAPER_NRMSE,
            interval.mean([one.half for one in middle]),
            relation=Relation.LE,
            assumptions=effects,
        )
        yield rows.row(
            "figure-9a-all",
            "NRMSE of predicted remaining times, held-out reducers, all samples",
            "Figure 9a",
            _PAPER_NRMSE,
            interval.mean([one.fuzzy for one in middle]),
            relation=Relation.LE,
            assumptions=effects,
        )
        others: tuple[tuple[str, Callable[[Accuracy], float]], ...] = (
            ("linear progress", lambda one: one.linear),
            ("the mean of the class", lambda one: one.mean),
        )
        for (name, error), short in zip(others, ("linear", "mean"), strict=True):
            yield rows.row(
                f"figure-9a-over-{short}",
                f"The fuzzy model's NRMSE is below that of {name}, relative (the paper has no such baseline)",
                "Figure 9a",
                0.0,
                interval.mean([1 - one.fuzzy / error(one) for one in middle]),
                baseline=interval.mean([error(one) for one in middle]).value,
                baseline_name=name,
            )

    def _by(self, seen: Seen, *, noises: Sequence[float] = (), skews: Sequence[float] = ()) -> str:
        told = [(noise, self._of(seen, noise, _SKEW)) for noise in noises]
        told += [(skew, self._of(seen, _NOISE, skew)) for skew in skews]
        return "; ".join(f"{x:g}: {per_cent(interval.mean([one.fuzzy for one in found]).value)}" for x, found in told)

    def _figure(self, seen: Seen) -> figures.Figure:
        middle = self._of(seen, _NOISE, _SKEW)
        points = middle[0].points
        errors = {
            name: tuple(
                interval.mean([of(one) for one in self._of(seen, noise, _SKEW)]).value for noise in predicting.NOISES
            )
            for name, of in _PREDICTORS.items()
        }
        return figures.Figure(
            name="Figure 9a",
            title="Remaining times of reducers",
            panels=(
                figures.Panel(
                    title="Twelve reducers at their half",
                    x=figures.Axis(label="Reducer"),
                    y=figures.Axis(label="Remaining time [s]", low=0),
                    marks=(
                        figures.Bars(label="actual", values=tuple(actual for actual, _ in points)),
                        figures.Bars(label="predicted", values=tuple(predicted for _, predicted in points)),
                    ),
                    categories=tuple(str(i + 1) for i in range(len(points))),
                ),
                figures.Panel(
                    title="Error by noise",
                    x=figures.Axis(label="Coefficient of variation of task times", low=0),
                    y=figures.Axis(label="NRMSE", low=0),
                    marks=(
                        *(
                            figures.Line(label=name, x=predicting.NOISES, y=y, markers=True)
                            for name, y in errors.items()
                        ),
                        figures.Level(label="paper: 7.8 %", at=_PAPER_NRMSE, paper=True),
                    ),
                ),
            ),
            paper_shape="Predicted and actual times of 12 reducers lie close together: NRMSE 7.8 % on average.",
            our_shape=f"NRMSE {per_cent(interval.mean([one.fuzzy for one in middle]).value)} over all samples, "
            f"{per_cent(interval.mean([one.half for one in middle]).value)} at the half.",
        )


_NOISE, _SKEW = 0.2, 0.25
_PREDICTORS: Mapping[str, Callable[[Accuracy], float]] = {
    "fuzzy": lambda one: one.fuzzy,
    "linear progress": lambda one: one.linear,
    "mean of the class": lambda one: one.mean,
}
