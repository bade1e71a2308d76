"""The operator with the profile `boathouse` and without one of its policies, for `live_mix.py`.

    python lab/benchmarks/partial_operator.py PART [arguments of `python -m boathouse`]

PART is `fspy` (fair order, no probes), `ikayak` (no suspension, no shrunk CPU, executors placed and reserved for as by
default), `ila` (no threshold; nodes are not measured) or `yarn-me` (no task starts with less memory).
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING
from unittest import mock

from boathouse import main
from boathouse_policies import fspy, ikayak, model, profiles, yarn_me
from boathouse_policies.baselines import FairShare
from boathouse_policies.framework.questions import Reserve
from boathouse_policies.profiles import boathouse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Profile, Where

PARTS = ("fspy", "ikayak", "ila", "yarn-me")
_OFF = {
    "fspy": boathouse.Config(fspy=fspy.Config(probes=False)),
    "ikayak": boathouse.Config(
        ikayak=dataclasses.replace(boathouse.Config().ikayak, suspension=False, shrink=ikayak.Shrink.OFF, crumbs=0.0)
    ),
    "ila": boathouse.Config(ila=dataclasses.replace(boathouse.Config().ila, threshold=None)),
    "yarn-me": boathouse.Config(yarn_me=yarn_me.Config(elastic=False)),
}


@dataclasses.dataclass(frozen=True, eq=False)
class NotForSpark(Reserve):
    """Reserve nodes as another policy does, but for drivers and executors."""

    whole: Reserve
    by_node = True

    def is_idle(self, state: CycleState) -> bool:
        """Whether no node is reserved, nor will be."""
        return self.whole.is_idle(state)

    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where the node is reserved for no class, or where the class may pass."""
        return self.whole.mask(pending, state, where)

    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Whether one node is reserved for no class, or the class may pass there."""
        return self.whole.passes(pending, state, node)

    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve nodes for a class that found none."""
        return () if pending.task_class.stage in ikayak.SPARK else self.whole.reserve(pending, state)

    def refused(
        self, pending_classes: Iterable[PendingClass], state: CycleState
    ) -> Iterable[tuple[PendingClass, model.Verdict, model.Wait | None]]:
        """Return the classes that no node takes, with the reason."""
        return self.whole.refused(pending_classes, state)


def build(part: str) -> Profile:
    """Return the profile without a part."""
    profile = boathouse.build(config=_OFF[part])
    if part == "fspy":
        return dataclasses.replace(profile, order=FairShare())
    if part == "ikayak":
        scores = {stage: score for stage, score in profile.scores.items() if stage not in ikayak.SPARK}
        return dataclasses.replace(profile, scores=scores, reserve=NotForSpark(profile.reserve))
    return profile


if __name__ == "__main__":
    left_out = sys.argv.pop(1)
    with mock.patch.object(profiles, "build", return_value=build(left_out)):
        sys.exit(main.main())
