"""The claims on prediction (IV.B): R² on held-out jobs, over noise."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from boathouse_lab.reproduce import fspy_workload, interval
from boathouse_lab.reproduce.claim import Assumption, Claim, Relation, measured
from boathouse_lab.reproduce.fspy_runs import Prediction
from boathouse_lab.reproduce.sources import sourced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.fspy_workload import Accuracy, HeldOut
    from boathouse_lab.reproduce.study import Scale

NOISE = 0.10
_TINY_S = 30.0
_PARTS = (
    ("map", "map_r2", "map_s", "Figure 2a"),
    ("reduce", "reduce_r2", "reduce_s", "Figure 2b"),
    ("job", "job_r2", "size_gib_s", "Figure 2c"),
)


def cases(scale: Scale) -> list[Prediction]:
    """Return the cases to compute."""
    noises = scale.pick(full=fspy_workload.NOISES, quick=(0.0, 0.05, NOISE, 0.15, 0.2, 0.5))
    return [Prediction(noise=noise, seed=seed) for noise in noises for seed in range(max(scale.seeds, 10))]


@dataclasses.dataclass(frozen=True, slots=True)
class Predicted:
    """What was worked out, by noise and seed."""

    held_out: Mapping[Prediction, HeldOut]

    @property
    def noises(self) -> list[float]:
        """Ascending."""
        return sorted({case.noise for case in self.held_out})

    def at(self, noise: float) -> list[HeldOut]:
        """Return the value of each seed."""
        found = [case for case in self.held_out if case.noise == noise]
        return [self.held_out[case] for case in sorted(found, key=lambda case: case.seed)]

    @property
    def rows(self) -> list[Accuracy]:
        """The mean R² at each noise."""
        by_noise = {noise: [fspy_workload.r2_of(noise, one) for one in self.at(noise)] for noise in self.noises}
        return [fspy_workload.mean(noise, found) for noise, found in by_noise.items()]

    def claims(self, paper: str) -> list[Claim]:
        """Return a row for each R², and for the bias on small jobs."""
        rows = self.rows
        met = fspy_workload.met_up_to(rows)
        noises = {"map": met.map_noise, "reduce": met.reduce_noise, "job": met.job_noise}
        return [
            *(self._r2(paper, part, noises[part[0]], rows) for part in _PARTS),
            self._small(
                sourced(paper, "small-maps-too-short"),
                "map_s",
                "Share of small jobs (maps below 30 s in all) whose map time is predicted too short",
                -1,
            ),
            self._small(
                sourced(paper, "small-reduces-too-long"),
                "reduce_s",
                "Share of small jobs whose reduce time is predicted too long",
                1,
            ),
        ]

    def _r2(self, paper: str, part: tuple[str, str, str, str], met: float | None, rows: Sequence[Accuracy]) -> Claim:
        name, field, _, figure = part
        values = [getattr(fspy_workload.r2_of(NOISE, one), field) for one in self.at(NOISE)]
        swept = ", ".join(f"{row.noise:.0%}: {getattr(row, field):.3f}" for row in rows)
        until = "at no noise" if met is None else f"up to a noise of {met:.0%}"
        claim = Claim(
            **sourced(paper, f"r2-{name}"),
            claim=f"R² of the predicted {name} {'size' if name == 'job' else 'time'} on held-out jobs",
            figure=figure,
            relation=Relation.GE,
            paper_value=getattr(fspy_workload.PAPER, field),
            **measured(interval.mean(values)),
            assumptions=(Assumption(name="Noise", value=NOISE, effect=f"met {until}; {swept}"),),
        )
        reason = f"at this noise: the paper's value is met {until}"
        return claim if claim.holds else dataclasses.replace(claim, reason=reason)

    def _small(self, source: Mapping[str, Any], field: str, words: str, sign: int) -> Claim:
        shares = [share for one in self.at(NOISE) if (share := _share(one, field, sign)) is not None]
        return Claim(
            **source,
            claim=words,
            figure="Figure 2a" if sign < 0 else "Figure 2b",
            relation=Relation.GE,
            paper_value=0.5,
            unit="%",
            **(measured(interval.mean(shares)) if shares else {"value": None}),
            assumptions=(Assumption(name="Noise", value=NOISE, effect="blurs the sign"),),
        )


def _share(held_out: HeldOut, field: str, sign: int) -> float | None:
    small = [i for i, (_, actual) in enumerate(held_out.map_s) if actual < _TINY_S]
    pairs = [getattr(held_out, field)[i] for i in small]
    return float(np.mean([(predicted - actual) * sign > 0 for predicted, actual in pairs])) if pairs else None
