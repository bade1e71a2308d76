"""Profiles by name, as the chart's values and the command line give them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from boathouse_policies import fspy, ikayak, ila, koala, yarn_me
from boathouse_policies.baselines import (
    LEAST_LOADED,
    PACKED,
    FairShare,
    Fifo,
    MemoryHeld,
    delay,
    late,
    orders,
    spark,
    yarn,
)
from boathouse_policies.profiles import boathouse

if TYPE_CHECKING:
    from collections.abc import Callable

    from boathouse_policies.framework import Profile, Score


_BUILDERS: dict[str, Callable[[Score], Profile]] = {
    "boathouse": boathouse.build,
    "capacity": functools.partial(yarn.build, "capacity", Fifo()),
    "delay": delay.build,
    "fair": functools.partial(orders.build, "fair", FairShare()),
    "fifo": functools.partial(orders.build, "fifo", Fifo()),
    "fspy": lambda score: fspy.build(score=score),
    "iao": ila.build_iao,
    "ikayak": ikayak.build,
    "ila": ila.build,
    **{  # static thresholds (ILA, Figure 12)
        f"ila-static-{threshold}": functools.partial(
            ila.build, config=ila.static(threshold), name=f"ila-static-{threshold}"
        )
        for threshold in (1, 2, 4, 6, 8)
    },
    "koala": lambda score: koala.build(score=score),
    "lao": ila.build_lao,
    "late": late.build,
    "non-spread-out": functools.partial(spark.build, "non-spread-out", spread=False),
    "spread-out": functools.partial(spark.build, "spread-out"),
    "srjf": orders.build_srjf,
    "yarn": functools.partial(yarn.build, "yarn", MemoryHeld()),
    "yarn-client": functools.partial(spark.build, "yarn-client", alone=True),
    "yarn-cluster": functools.partial(spark.build, "yarn-cluster"),
    "yarn-me": yarn_me.build,
    "yarn-no-reservations": functools.partial(orders.build, "yarn-no-reservations", MemoryHeld()),
}

_PLACEMENTS: dict[str, Score] = {"least-loaded": LEAST_LOADED, "packed": PACKED}


def names() -> tuple[str, ...]:
    """All profiles, sorted."""
    return tuple(sorted(_BUILDERS))


def placements() -> tuple[str, ...]:
    """All choices of placement."""
    return tuple(_PLACEMENTS)


def build(name: str, *, placement: str = "least-loaded") -> Profile:
    """Build a profile.

    Raises:
        ValueError: There is no profile or placement of that name; the message lists those there are.
    """
    if name not in _BUILDERS:
        raise ValueError(f"there is no profile {name!r}; choose one of: {', '.join(names())}")
    if placement not in _PLACEMENTS:
        raise ValueError(f"there is no placement {placement!r}; choose one of: {', '.join(placements())}")
    return _BUILDERS[name](_PLACEMENTS[placement])
