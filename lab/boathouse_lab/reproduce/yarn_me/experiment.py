"""What every experiment of the study is: the simulations that it needs, and what it makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from boathouse_lab.reproduce import interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.reproduce import study
    from boathouse_lab.reproduce.yarn_me.case import Case, Seen

Experiment: TypeAlias = "study.Experiment[Case, Seen]"

PAPER: Final = "yarn-me"


def job_time_s(seen: Seen) -> float:
    """Return the job time, the measure of most claims."""
    return seen.mean_job_time_s


def gains(
    seen: Mapping[Case, Seen],
    ours: Sequence[Case],
    baseline: Sequence[Case],
    measure: Callable[[Seen], float] = job_time_s,
) -> list[float]:
    """Return by how much ours is lower, as a share of the baseline, case by case."""
    return [1 - measure(seen[a]) / measure(seen[b]) for a, b in zip(ours, baseline, strict=True)]


def mean_of(seen: Mapping[Case, Seen], cases: Sequence[Case], measure: Callable[[Seen], float] = job_time_s) -> float:
    """Return the plain mean over cases."""
    return interval.mean([measure(seen[one]) for one in cases]).value
