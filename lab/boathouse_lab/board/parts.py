"""The profile `boathouse` without one of its parts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from boathouse_policies import fspy, ikayak, model, yarn_me
from boathouse_policies.baselines import FairShare
from boathouse_policies.framework.questions import Reserve
from boathouse_policies.profiles import boathouse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Profile, Where

POLICIES: Final = ("fspy", "ikayak", "ila", "yarn-me")
PARTS: Final = (*POLICIES, "suspend")
"""`fspy` (fair order, no probes), `ikayak` (no suspension, no shrunk CPU, executors placed and reserved for as by
default), `ila` (no threshold; nodes are not measured), `yarn-me` (no task starts with less memory), `suspend` (no
suspension)."""
_OFF: Final = {
    "fspy": boathouse.Config(fspy=fspy.Config(probes=False)),
    "ikayak": boathouse.Config(
        ikayak=dataclasses.replace(boathouse.Config().ikayak, suspension=False, shrink=ikayak.Shrink.OFF, crumbs=0.0)
    ),
    "suspend": boathouse.Config(ikayak=dataclasses.replace(boathouse.Config().ikayak, suspension=False)),
    "ila": boathouse.Config(ila=dataclasses.replace(boathouse.Config().ila, threshold=None)),
    "yarn-me": boathouse.Config(yarn_me=yarn_me.Config(elastic=False)),
}


@dataclasses.dataclass(frozen=True, eq=False)
class NotForSpark(Reserve):
    """Reserve nodes as another policy does, but for drivers and executors."""

    whole: Reserve
    by_node = True

    @override
    def is_idle(self, state: CycleState) -> bool:
        """Whether no node is reserved, nor will be."""
        return self.whole.is_idle(state)

    @override
    def mask(self, pending: PendingClass, state: CycleState, where: Where) -> model.BoolVector | None:
        """True where the node is reserved for no class, or where the class may pass."""
        return self.whole.mask(pending, state, where)

    @override
    def passes(self, pending: PendingClass, state: CycleState, node: int) -> bool:
        """Whether one node is reserved for no class, or the class may pass there."""
        return self.whole.passes(pending, state, node)

    @override
    def reserve(self, pending: PendingClass, state: CycleState) -> Sequence[model.Reservation | model.Wait]:
        """Reserve nodes for a class that found none."""
        return () if pending.task_class.stage in ikayak.SPARK else self.whole.reserve(pending, state)

    @override
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
