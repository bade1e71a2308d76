"""The schedulers that are compared: iKayak, parts of it on stock YARN, and what the paper compares it with."""

from __future__ import annotations

import dataclasses
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from boathouse_policies import ikayak, model, profiles
from boathouse_policies.baselines import delay, plain
from boathouse_policies.baselines.plain import Fifo
from boathouse_policies.framework import Patience
from boathouse_policies.ikayak.book import Book
from boathouse_policies.ikayak.remaining import Bank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework import CycleState, PendingClass, Profile
    from boathouse_policies.ikayak.predictors import Sample
    from boathouse_policies.ikayak.remaining import Key

CLUSTER, CLIENT = "yarn-cluster", "yarn-client"
SPREAD, NON_SPREAD = "spread-out", "non-spread-out"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A scheduler.

    Attributes:
        base: The profile; what iKayak's parts are put on.
        placement: Executors by Algorithms 1 and 2, instead of the base's.
        suspension: Reducers are suspended.
        locality: Maps go where their blocks are, shrunk if need be.
        constants: iKayak's that differ from its defaults, by name.
        error: Coefficient of variation of what is added to predicted remaining times.
        delay: Delay scheduling of maps.
        fair: Jobs by their dominant shares, instead of in the order of submission. The paper names no order for "stock
            YARN" and calls FIFO Hadoop's default (L471); so does Hadoop: capacity scheduler, one queue, FIFO in it.
    """

    base: str = CLUSTER
    placement: bool = False
    suspension: bool = False
    locality: bool = False
    constants: tuple[tuple[str, float], ...] = ()
    error: float = 0.0
    delay: bool = False
    fair: bool = False

    @property
    def is_ikayak(self) -> bool:
        """Whether any of it is on."""
        return self.placement or self.suspension or self.locality


IKAYAK: Final = Variant(placement=True, suspension=True, locality=True)
STOCK: Final = Variant()
IN_CLIENT: Final = Variant(base=CLIENT)
PACKED: Final = Variant(base=NON_SPREAD)
PLACING: Final = Variant(placement=True)
ADJUSTING: Final = Variant(suspension=True)
LOCALISING: Final = Variant(locality=True)


def build(variant: Variant, seed: int = 0) -> Profile:
    """Return the profile of a variant, with a state of its own.

    Args:
        variant: Which.
        seed: Of prediction errors.
    """
    profile = profiles.build(variant.base)
    if variant.is_ikayak:
        profile = _with_parts(profile, variant, seed)
    if variant.delay:
        profile = _with_delay(profile)
    return profile if variant.fair else dataclasses.replace(profile, order=Fifo())


def _with_parts(base: Profile, variant: Variant, seed: int) -> Profile:
    """Build iKayak's parts; the base places executors where iKayak does not."""
    constants: dict[str, Any] = dict(variant.constants)
    config = dataclasses.replace(
        ikayak.Config(
            placement=variant.placement,
            suspension=variant.suspension,
            shrink=ikayak.Shrink.BOTH if variant.locality else ikayak.Shrink.OFF,
            local_first=variant.locality,
        ),
        **constants,
    )
    profile = ikayak.build(config=config, order=base.order)
    if variant.error:
        books = [one for one in profile.observers if isinstance(one, Book)]
        for book in books:
            book.bank = Erring(config, variant.error, seed)
    if variant.placement:
        return profile
    scores = {**profile.scores, model.Stage.EXECUTOR: base.score_of(model.Stage.EXECUTOR)}
    return dataclasses.replace(
        profile,
        scores=MappingProxyType(scores),
        reserve=base.reserve,
        observers=(*base.observers, *profile.observers),
    )


class Erring(Bank):
    """Predictions with more error than they have (Figure 9b): each is multiplied by a log-normal of mean 1.

    Args:
        config: iKayak's constants.
        error: Coefficient of variation.
        seed: Of what is drawn.
    """

    def __init__(self, config: ikayak.Config, error: float, seed: int) -> None:
        super().__init__(config)
        self._random = np.random.default_rng([seed, _SALT])
        self._sigma = math.sqrt(math.log1p(error**2))

    @override
    def left_s(self, keys: Sequence[Key], samples: Sequence[Sample]) -> model.FloatVector:
        found = super().left_s(keys, samples)
        factors = self._random.lognormal(-(self._sigma**2) / 2, self._sigma, len(found))
        wrong: model.FloatVector = found * factors
        return wrong


_SALT = 0xE44


class _MapsWait(Patience):
    """Patience of maps alone."""

    def __init__(self, patience: delay.Delay) -> None:
        self._patience = patience

    @override
    def wait(self, pending: PendingClass, node: int, state: CycleState) -> model.Wait | None:
        """Return the wait of delay scheduling."""
        return self._patience.wait(pending, node, state) if pending.task_class.stage is model.Stage.MAP else None


def _with_delay(base: Profile) -> Profile:
    patience = delay.Delay(delay.HADOOP_S)
    closest = plain.Closest(plain.LEAST_LOADED, delay.LEVEL)
    return dataclasses.replace(
        base,
        scores=MappingProxyType({**base.scores, model.Stage.MAP: closest}),
        patience=_MapsWait(patience),
        observers=(*base.observers, patience),
        hooks=(*base.hooks, patience),
    )
