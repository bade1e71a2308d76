"""What the simulated segments say: responses and slowdowns by RCP group and seed."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from boathouse_lab.reproduce import fspy_rcp, fspy_setting, interval
from boathouse_lab.reproduce.fspy_runs import FAIR, FSPY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boathouse_lab.reproduce.fspy_rcp import Scale
    from boathouse_lab.reproduce.fspy_runs import Case, Run
    from boathouse_lab.reproduce.fspy_setting import Setting
    from boathouse_lab.reproduce.interval import Estimate
    from boathouse_sim.fluid import FloatVector

Measure: TypeAlias = "Callable[[Found, int], float]"
"""A value of one seed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The 37 segments by RCP.

    Attributes:
        scale: α and β.
        loads: ΣS / (ΣI·CR) of each segment without noise, shape [37].
        tasks: Of each, shape [37].
        of: The group of each, shape [37].
    """

    scale: Scale
    loads: tuple[float, ...]
    tasks: tuple[int, ...]
    of: tuple[int, ...]

    def members(self, group: int) -> list[int]:
        """Return segments of a group, those with the fewest tasks first."""
        return sorted((i for i, one in enumerate(self.of) if one == group), key=lambda i: (self.tasks[i], i))

    @property
    def names(self) -> list[int]:
        """The groups that there are, ascending."""
        return sorted(set(self.of))

    def count(self, group: int) -> int:
        """Return its segments."""
        return self.of.count(group)

    @property
    def mode(self) -> int:
        """The group of most segments; the lower of equals."""
        return max(self.names, key=lambda one: (self.count(one), -one))


@functools.cache
def groups(setting: Setting) -> Groups:
    """Return segments by load, the same for all seeds: noise does not move them."""
    exact = dataclasses.replace(setting, noise=0.0, rerun=0.0)
    found = [fspy_setting.segment(i, 0, exact) for i in range(len(fspy_setting.segments()))]
    loads = tuple(one.load for one in found)
    scale = fspy_rcp.fit_scale(loads)
    return Groups(
        scale=scale,
        loads=loads,
        tasks=tuple(one.workload.tasks for one in found),
        of=tuple(scale.group(load) for load in loads),
    )


class Found:
    """Runs of one setting.

    Args:
        runs: By case.
        setting: Whose runs count.
        by_group: Segments that were simulated, by group.
        seeds: How many.
    """

    def __init__(
        self, runs: Mapping[Case, Run], setting: Setting, by_group: Mapping[int, Sequence[int]], seeds: int
    ) -> None:
        self._runs = {
            (case.segment, case.policy, case.seed): run for case, run in runs.items() if case.setting == setting
        }
        self.by_group = {group: tuple(of) for group, of in by_group.items() if of}
        self.seeds = range(seeds)

    def run(self, segment: int, policy: str, seed: int) -> Run:
        """Run one simulation."""
        return self._runs[segment, policy, seed]

    def segments(self, least: int, most: int) -> list[int]:
        """Return the segments of the groups from `least` to `most`."""
        return [one for group, of in sorted(self.by_group.items()) if least <= group <= most for one in of]

    def responses_s(self, policy: str, segments: Sequence[int], seed: int) -> FloatVector:
        """Return the responses of all jobs of the segments, in the same order under each policy."""
        return np.concatenate([self.run(one, policy, seed).response_s for one in segments])

    def slowdowns(self, policy: str, segments: Sequence[int], seed: int) -> FloatVector:
        """Return response over response alone on the cluster."""
        return np.concatenate(
            [np.divide(run.response_s, run.ideal_s) for run in (self.run(one, policy, seed) for one in segments)]
        )

    def fair_slowdowns(self, segments: Sequence[int], seed: int) -> FloatVector:
        """Return response under FSPY over response under Fair."""
        return self.responses_s(FSPY, segments, seed) / self.responses_s(FAIR, segments, seed)

    def gain(self, segments: Sequence[int], seed: int) -> float:
        """Return mean response under Fair over that under FSPY."""
        return self.mean_s(FAIR, segments, seed) / self.mean_s(FSPY, segments, seed)

    def mean_s(self, policy: str, segments: Sequence[int], seed: int) -> float:
        """Return mean response of all jobs."""
        return float(self.responses_s(policy, segments, seed).mean())

    def over_seeds(self, measure: Measure) -> Estimate:
        """Return the mean of a measure with its interval."""
        return interval.mean([measure(self, seed) for seed in self.seeds])
