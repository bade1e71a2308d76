"""Figures 7 and 8: where the maps of the stream ran, and how much slower than alone."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Relation
from boathouse_lab.reproduce.ila import schedulers, setting, sweep
from boathouse_lab.reproduce.ila.experiment import Runs, local, row, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boathouse_lab.reproduce.claim import Claim
    from boathouse_lab.reproduce.ila.case import Case, Seen
    from boathouse_lab.reproduce.interval import Estimate

SMALL = "TeraSort(2)"


class Tasks:
    """The rows of both figures.

    Args:
        runs: Of the stream.
        swept: How they move.
    """

    def __init__(self, runs: Runs, swept: sweep.Sweep) -> None:
        self._runs = runs
        self._sweep = swept

    def claims(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        """Return all rows."""
        yield from self._locality(seen)
        yield from self._small(seen)
        yield from self._ours(seen)
        yield from self._iao(seen)
        yield from self._oblivious(seen)

    # Figure 7

    def _locality(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        share = local(setting.LOCATED_IO)
        yield row(
            "figure-7-io",
            "Maps of I/O-bound jobs with local input under ILA, mean over types",
            "Figure 7",
            Relation.GE,
            0.9,
            self._runs.mean(seen, schedulers.ILA, share),
            share=True,
            assumptions=self._sweep.moves(seen, "share", sweep.locality),
        )
        for one, paper, moves in (
            (schedulers.PURE_FAIR, 0.65, sweep.locality_gain),
            (schedulers.DELAY, 0.20, sweep.locality_gain_over_delay),
        ):
            yield row(
                f"figure-7-io-{one}",
                f"By how much more maps of I/O-bound jobs have local input under ILA than under {title(one)}",
                "Figure 7",
                Relation.GE,
                paper,
                self._runs.over(seen, schedulers.ILA, one, lambda a, b: share(a) / share(b) - 1),
                share=True,
                baseline=(f"{title(one)}: share with local input", self._runs.mean(seen, one, share)),
                assumptions=self._sweep.moves(seen, "gain", moves),
            )
        yield row(
            "figure-7-cpu",
            "Maps of CPU-bound jobs with local input under ILA, without any delay, mean over types",
            "Figure 7",
            Relation.EQ,
            0.6,
            self._runs.mean(seen, schedulers.ILA, local(setting.CPU_KINDS)),
            share=True,
            tolerance=0.1,
        )

    def _small(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        share = local((SMALL,))
        yield row(
            "figure-7-small-greedy",
            f"Maps of {SMALL} with local input under the greedy schedulers",
            "Figure 7",
            Relation.LE,
            0.35,
            self._together(seen, schedulers.GREEDY, share),
            share=True,
            baseline=("greedy, but told of hosts", self._runs.mean(seen, schedulers.SEEING, share)),
        )
        yield row(
            "figure-7-small",
            f"Maps of {SMALL} with local input under ILA",
            "Figure 7",
            Relation.GE,
            0.85,
            self._runs.mean(seen, schedulers.ILA, share),
            share=True,
        )

    def _together(self, seen: Mapping[Case, Seen], some: Sequence[str], measure: Callable[[Seen], float]) -> Estimate:
        """Return the mean over schedulers, seed by seed."""
        by_seed = zip(*(self._runs.samples(seen, one, measure) for one in some), strict=True)
        return interval.mean([sum(values) / len(some) for values in by_seed])

    # Figure 8

    def _ours(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        for name, bound, words, paper in (
            ("unslowed", sweep.UNSLOWED, "not slowed down", 0.7),
            ("below-1-5", 1.5, "slower by less than 1.5×", 0.9),
            ("below-2-5", 2.5, "slower by less than 2.5×", 0.99),
        ):
            yield row(
                f"figure-8-{name}",
                f"Maps under ILA that are {words}",
                "Figure 8",
                Relation.GE,
                paper,
                self._runs.mean(seen, schedulers.ILA, within(bound)),
                share=True,
                baseline=("PureFair: the same share", self._runs.mean(seen, schedulers.PURE_FAIR, within(bound))),
                assumptions=self._sweep.moves(seen, "share", sweep.unslowed) if bound == sweep.UNSLOWED else (),
            )

    def _iao(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        for bound, relation, paper, tolerance in ((2.0, Relation.EQ, 0.83, 0.05), (10.0, Relation.GE, 0.99, 0.0)):
            yield row(
                f"figure-8-iao-below-{bound:g}",
                f"Maps under IAO that are slower by less than {bound:g}×",
                "Figure 8",
                relation,
                paper,
                self._runs.mean(seen, schedulers.IAO, within(bound)),
                share=True,
                tolerance=tolerance,
            )

    def _oblivious(self, seen: Mapping[Case, Seen]) -> Iterator[Claim]:
        yield row(
            "figure-8-oblivious-unslowed",
            "Maps under the oblivious schedulers that are not slowed down",
            "Figure 8",
            Relation.EQ,
            0.15,
            self._together(seen, schedulers.OBLIVIOUS, within(sweep.UNSLOWED)),
            share=True,
            tolerance=0.05,
        )
        slow = {one: self._runs.mean(seen, one, beyond(2.0)) for one in schedulers.OBLIVIOUS}
        worst = max(slow, key=lambda one: slow[one].value)
        yield row(
            "figure-8-oblivious-beyond-2",
            "Maps slower by more than 2× under the worst of the oblivious schedulers (up to 60 %)",
            "Figure 8",
            Relation.EQ,
            0.6,
            slow[worst],
            share=True,
            tolerance=0.1,
            note=f"{title(worst)}",
        )
        yield row(
            "figure-8-oblivious-beyond-10",
            "Maps slower by more than 10× under the oblivious schedulers",
            "Figure 8",
            Relation.EQ,
            0.1,
            self._together(seen, schedulers.OBLIVIOUS, beyond(10.0)),
            share=True,
            tolerance=0.05,
        )


def within(slowdown: float) -> Callable[[Seen], float]:
    """Return the share of maps that are slower by this at most."""
    return lambda seen: seen.at_most(slowdown)


def beyond(slowdown: float) -> Callable[[Seen], float]:
    """Return the share of maps that are slower by more."""
    return lambda seen: 1.0 - seen.at_most(slowdown)


def every(slowdowns: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the values of all seeds."""
    return tuple(itertools.chain.from_iterable(slowdowns))
