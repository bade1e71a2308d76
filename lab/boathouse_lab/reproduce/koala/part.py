"""What every part of the study is, and small words for its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from boathouse_lab.reproduce import interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_lab.reproduce.koala.case import Case, Seen
    from boathouse_lab.reproduce.study import Experiment

Part: TypeAlias = "Experiment[Case, Seen]"


def mean_s(seen: Mapping[Case, Seen], cases: Sequence[Case]) -> Estimate:
    """Return mean response time of the one cluster's jobs, over seeds."""
    return interval.mean([seen[one].only.mean_s for one in cases])


def times_faster(seen: Mapping[Case, Seen], ours: Sequence[Case], baseline: Sequence[Case]) -> Estimate:
    """Return the baseline's mean response time over ours, seed by seed."""
    return interval.ratio([seen[one].only.mean_s for one in baseline], [seen[one].only.mean_s for one in ours])
