"""Profiles by name, as the chart's values and the command line give them."""

import dataclasses
import functools
from collections.abc import Callable

from boathouse_policies import fspy, ikayak, ila, koala, yarn_me
from boathouse_policies.baselines import delay, late, plain, spark, yarn
from boathouse_policies.framework import Profile, Score
from boathouse_policies.profiles import boathouse


@dataclasses.dataclass(frozen=True, slots=True)
class Switches:
    """Which decisions a profile may take. A policy whose switch is off does not decide at all."""

    suspend: bool = True  # suspend reducers that lack map output (iKayak)
    resize: bool = True  # give tasks less CPU or memory than requested (iKayak, YARN-ME)
    speculate: bool = False  # start second attempts of slow tasks (LATE)
    # Grow and shrink clusters, with any profile (Koala). Without it, only profile `koala` does.
    scale: bool = False
    per_site: bool = False  # divide the idle nodes of each zone over clusters on its own (Koala)
    probe: bool = True  # run a job on a sample of its input to predict its size (FSPY)
    # Length of the blocks of time in which parts of the profile `boathouse` act or pause; 0 for none.
    switchback_s: float = 0.0


def _boathouse(score: Score, switches: Switches) -> Profile:
    config = boathouse.Config()
    adapted = boathouse.Config(
        fspy=dataclasses.replace(config.fspy, probes=switches.probe),
        ikayak=_switched(config.ikayak, switches),
        yarn_me=dataclasses.replace(config.yarn_me, elastic=switches.resize),
        switchback_s=switches.switchback_s,
    )
    return boathouse.build(score, adapted)


def _switched(config: ikayak.Config, switches: Switches) -> ikayak.Config:
    config = dataclasses.replace(config, suspension=config.suspension and switches.suspend)
    return config if switches.resize else dataclasses.replace(config, shrink=ikayak.Shrink.OFF, crumbs=0.0)


def _partitioned(config: koala.Config, switches: Switches) -> koala.Config:
    return dataclasses.replace(config, partition=koala.Partition.PER_SITE if switches.per_site else config.partition)


_BUILDERS: dict[str, Callable[[Score], Profile]] = {
    "capacity": functools.partial(yarn.build, "capacity", plain.Fifo()),
    "delay": delay.build,
    "fair": functools.partial(plain.build, "fair", plain.FairShare()),
    "fifo": functools.partial(plain.build, "fifo", plain.Fifo()),
    "iao": ila.build_iao,
    "ila": ila.build,
    **{  # static thresholds (ILA, Figure 12)
        f"ila-static-{threshold}": functools.partial(
            ila.build, config=ila.static(threshold), name=f"ila-static-{threshold}"
        )
        for threshold in (1, 2, 4, 6, 8)
    },
    "lao": ila.build_lao,
    "late": late.build,
    "non-spread-out": functools.partial(spark.build, "non-spread-out", spread=False),
    "spread-out": functools.partial(spark.build, "spread-out"),
    "srjf": plain.build_srjf,
    "yarn": functools.partial(yarn.build, "yarn", plain.MemoryHeld()),
    "yarn-client": functools.partial(spark.build, "yarn-client", alone=True),
    "yarn-cluster": functools.partial(spark.build, "yarn-cluster"),
    "yarn-no-reservations": functools.partial(plain.build, "yarn-no-reservations", plain.MemoryHeld()),
}

_SWITCHED_BUILDERS: dict[str, Callable[[Score, Switches], Profile]] = {
    "boathouse": _boathouse,
    "fspy": lambda score, switches: fspy.build(fspy.Config(probes=switches.probe), score=score),
    "ikayak": lambda score, switches: ikayak.build(score, _switched(ikayak.Config(), switches)),
    "koala": lambda score, switches: koala.build(_partitioned(koala.Config(), switches), score=score),
    "yarn-me": lambda score, switches: yarn_me.build(score, yarn_me.Config(elastic=switches.resize)),
}
"""Profiles that take decisions beside the choice of nodes."""

_PLACEMENTS: dict[str, Score] = {"least-loaded": plain.LEAST_LOADED, "packed": plain.PACKED}
_ALLOWED = Switches()


def names() -> tuple[str, ...]:
    """Return all profiles, sorted."""
    return tuple(sorted((*_BUILDERS, *_SWITCHED_BUILDERS)))


def placements() -> tuple[str, ...]:
    """Return all choices of placement."""
    return tuple(_PLACEMENTS)


def build(name: str, *, placement: str = "least-loaded", switches: Switches = _ALLOWED) -> Profile:
    """Build a profile that decides no more than its switches let it; a ValueError with the choices for other names."""
    if name not in names():
        raise ValueError(f"there is no profile {name!r}; choose one of: {', '.join(names())}")
    if placement not in _PLACEMENTS:
        raise ValueError(f"there is no placement {placement!r}; choose one of: {', '.join(placements())}")
    score = _PLACEMENTS[placement]
    profile = _SWITCHED_BUILDERS[name](score, switches) if name in _SWITCHED_BUILDERS else _BUILDERS[name](score)
    has_late = any(isinstance(controller, late.Late) for controller in profile.controllers)
    profile = late.added(profile) if switches.speculate and not has_late else profile
    return koala.added(profile, _partitioned(koala.ADDED, switches)) if switches.scale else profile
