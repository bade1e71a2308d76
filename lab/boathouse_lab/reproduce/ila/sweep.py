"""How the claims of the stream move with what was assumed: PureFair, Delay and ILA with one value varied at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.claim import Assumption
from boathouse_lab.reproduce.ila import schedulers, setting
from boathouse_lab.reproduce.ila.experiment import Runs, faster, local, slower
from boathouse_lab.reproduce.ila.programs import PAPER, Assumed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from boathouse_lab.reproduce.ila.case import Case, Seen

Measure: TypeAlias = "Callable[[Mapping[str, Seen]], float]"

SCHEDULERS = (schedulers.PURE_FAIR, schedulers.DELAY, schedulers.ILA)

VARIED: tuple[tuple[str, str, tuple[Assumed, ...]], ...] = (
    (
        "alone_mb_per_s",
        "MB/s that an I/O-bound task moves alone",
        (Assumed(alone_mb_per_s=12.0), Assumed(alone_mb_per_s=35.0)),
    ),
    ("cpu_map_s", "CPU seconds of a CPU-bound map", (Assumed(cpu_map_s=10.0), Assumed(cpu_map_s=40.0))),
    ("replicas", "replicas of a block", (Assumed(replicas=1), Assumed(replicas=2))),
    ("seek", "share of a disk that a further stream costs", (Assumed(seek=0.15), Assumed(seek=0.5))),
    ("ceiling", "largest slowdown by neighbours", (Assumed(ceiling=7.0), Assumed(ceiling=40.0))),
    ("cpu_power", "power of CPU slowdown beyond 80 %", (Assumed(cpu_power=1.0), Assumed(cpu_power=1.5))),
)
"""A field of `Assumed`, its words, other values."""


class Sweep:
    """The simulations.

    Args:
        seeds: Of each; 0 for none.
        part: Of the larger jobs.
    """

    def __init__(self, seeds: int, part: float) -> None:
        self.seeds = seeds
        self._part = part

    def _runs(self, assumed: Assumed) -> Runs:
        return Runs(setting.Load.STREAM, self.seeds, self._part, assumed)

    def cases(self) -> Iterator[Case]:
        """Return all cases."""
        for _, _, values in VARIED if self.seeds else ():
            for assumed in values:
                for scheduler in SCHEDULERS:
                    yield from self._runs(assumed).cases(scheduler)

    def moves(self, seen: Mapping[Case, Seen], words: str, measure: Measure) -> tuple[Assumption, ...]:
        """Return each assumption, with what a measure is for other values of it."""
        return tuple(
            Assumption(
                name=what,
                value=getattr(PAPER, field),
                effect=f"{words}: "
                + "; ".join(f"{getattr(one, field):g}: {self._mean(seen, one, measure):.2f}" for one in values),
            )
            for field, what, values in (VARIED if self.seeds else ())
        )

    def _mean(self, seen: Mapping[Case, Seen], assumed: Assumed, measure: Measure) -> float:
        runs = self._runs(assumed)
        by_seed = zip(*(runs.cases(one) for one in SCHEDULERS), strict=True)
        return interval.mean(
            [measure({one: seen[case] for one, case in zip(SCHEDULERS, cases, strict=True)}) for cases in by_seed]
        ).value


def speed_up(by: Mapping[str, Seen]) -> float:
    """Return the speed-up of jobs, over PureFair."""
    return slower(setting.KINDS)(by[schedulers.PURE_FAIR], by[schedulers.ILA])


def throughput(by: Mapping[str, Seen]) -> float:
    """Return the throughput over PureFair."""
    return faster(by[schedulers.ILA], by[schedulers.PURE_FAIR])


def locality(by: Mapping[str, Seen]) -> float:
    """Return the locality of ILA."""
    return local(setting.LOCATED_IO)(by[schedulers.ILA])


def locality_gain(by: Mapping[str, Seen]) -> float:
    """Return the locality gain over PureFair."""
    return locality(by) / local(setting.LOCATED_IO)(by[schedulers.PURE_FAIR]) - 1


def locality_gain_over_delay(by: Mapping[str, Seen]) -> float:
    """Return the locality gain over Delay."""
    return locality(by) / local(setting.LOCATED_IO)(by[schedulers.DELAY]) - 1


def unslowed(by: Mapping[str, Seen]) -> float:
    """Return the unslowed maps of ILA."""
    return by[schedulers.ILA].at_most(UNSLOWED)


UNSLOWED = 1.1
"""A map "without any slowdown" (ours): run times stray by 5 % of their own."""
