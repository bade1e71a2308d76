"""What every experiment of the study is: the simulations that it needs, and what it makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from boathouse_sim.reproduce import interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from boathouse_sim.reproduce.study import Findings
    from boathouse_sim.reproduce.yarn_me.case import Case, Seen

PAPER: Final = "yarn-me"


class Experiment(Protocol):
    """A part of the evaluation."""

    def cases(self) -> Iterable[Case]:
        """Its simulations; those that experiments share are run once."""
        ...

    def findings(self, seen: Mapping[Case, Seen]) -> Findings:
        """Its claims and pictures, from all simulations."""
        ...


def job_time_s(seen: Seen) -> float:
    """The measure of most claims."""
    return seen.mean_job_time_s


def gains(
    seen: Mapping[Case, Seen],
    ours: Sequence[Case],
    baseline: Sequence[Case],
    measure: Callable[[Seen], float] = job_time_s,
) -> list[float]:
    """By how much ours is lower, as a share of the baseline, case by case."""
    return [1 - measure(seen[a]) / measure(seen[b]) for a, b in zip(ours, baseline, strict=True)]


def mean_of(seen: Mapping[Case, Seen], cases: Sequence[Case], measure: Callable[[Seen], float] = job_time_s) -> float:
    """The plain mean over cases."""
    return interval.mean([measure(seen[one]) for one in cases]).value


def per_cent(share: float) -> str:
    """For sentences."""
    return f"{100 * share:.0f} %"
