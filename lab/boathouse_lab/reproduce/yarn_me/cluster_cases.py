"""The simulations of section 5 and what is measured in them: shared by its rows and its pictures."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from boathouse_lab.reproduce import interval
from boathouse_lab.reproduce.yarn_me.case import Case, Seen
from boathouse_lab.reproduce.yarn_me.table1 import TAKEN_RATES, Rates, Runs
from boathouse_sim.workload import Errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

JITTER: Final = 0.1
VARIANT_SEEDS: Final = 1
HDD_BYTES_PER_S: Final = 100e6
"""A SATA disk's sequential rate, for the variant with a disk budget."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One assumption varied: what, to which value, and the cases' fields that say so."""

    name: str
    value: str
    rates: Rates = TAKEN_RATES
    jitter: float = JITTER
    heartbeat_s: float | None = None
    disk_bytes_per_s: float | None = None


MAP_RATE, REDUCE_RATE = "a map's rate over its input", "a reducer's rate over its input"
SPREAD, BEATS, BUDGET = "spread of tasks' durations", "heartbeats", "disk budget of elastic tasks"
PLAIN: Final = Variant(name="", value="")
VARIANTS: Final = (
    Variant(name=MAP_RATE, value="5 MB/s", rates=Rates(map_mb_per_s=5)),
    Variant(name=MAP_RATE, value="20 MB/s", rates=Rates(map_mb_per_s=20)),
    Variant(name=REDUCE_RATE, value="5 MB/s", rates=Rates(reduce_mb_per_s=5)),
    Variant(name=REDUCE_RATE, value="20 MB/s", rates=Rates(reduce_mb_per_s=20)),
    Variant(name=SPREAD, value="± 30 %", jitter=0.3),
    Variant(name=BEATS, value="1 s", heartbeat_s=1.0),
    Variant(name=BUDGET, value="half of 100 MB/s", disk_bytes_per_s=HDD_BYTES_PER_S),
)
TAKEN: Final = {
    MAP_RATE: "10 MB/s",
    REDUCE_RATE: "10 MB/s",
    SPREAD: "± 10 %, uniform",
    BEATS: "none: tasks start when they fit",
    BUDGET: "none",
}


def cases(recipe: Runs, profile: str, seeds: int, variant: Variant = PLAIN) -> list[Case]:
    """Return one for each seed."""
    recipe = dataclasses.replace(recipe, rates=variant.rates)
    return [
        Case(
            recipe=recipe,
            seed=seed,
            profile=profile,
            errors=Errors(duration=(-variant.jitter, variant.jitter)),
            heartbeat_s=variant.heartbeat_s,
            disk_bytes_per_s=variant.disk_bytes_per_s,
            watched=True,
        )
        for seed in range(seeds)
    ]


def job_time_s(seen: Seen) -> float:
    """Return mean run time of the applications."""
    assert seen.watched is not None
    return interval.mean(list(seen.watched.run_times_s().values())).value


def makespan_s(seen: Seen) -> float:
    """Return the time from the first submission to the last end."""
    return seen.makespan_s


def phase_s(kind: str, letter: str = "") -> Callable[[Seen], float]:
    """Return mean length of the phases of a kind, of all applications or of one."""

    def measure(seen: Seen) -> float:
        assert seen.watched is not None
        return interval.mean(
            [span.seconds for span in seen.watched.spans if span.kind == kind and span.job.startswith(letter)]
        ).value

    return measure


def app_time_s(letter: str) -> Callable[[Seen], float]:
    """Return mean run time of one application."""

    def measure(seen: Seen) -> float:
        assert seen.watched is not None
        times = seen.watched.run_times_s()
        return interval.mean([seconds for run, seconds in times.items() if run.startswith(letter)]).value

    return measure


def span_of(values: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, least and most, as the paper's bars show."""
    return interval.mean(values).value, min(values), max(values)
