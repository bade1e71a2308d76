"""The schedulers of the comparison (5.1), by the names that rows and pictures use.

Those that were not made for virtual machines do not know of hosts (`Profile.sees_hosts`); IAO, which does for its
interference, takes tasks greedily without that knowledge, as the paper's Figure 7 puts it with the others.
"""

from __future__ import annotations

import dataclasses

from boathouse_lab.reproduce.ila import oracle
from boathouse_lab.reproduce.ila.programs import PAPER, Assumed
from boathouse_policies import profiles
from boathouse_policies.baselines import LEAST_LOADED, Fifo
from boathouse_policies.framework import Profile

PURE_FAIR, DELAY, LATE, CAPACITY = "fair", "delay", "late", "capacity"
IAO, LAO, ILA = "iao", "lao", "ila"
SEEING = "fair, seeing hosts"
"""Ours, for the reason of a row: greedy as PureFair, but told which virtual machines share a host."""

OBLIVIOUS = (PURE_FAIR, DELAY, LATE, CAPACITY, LAO)
"""What the paper calls interference-oblivious."""

GREEDY = (PURE_FAIR, LATE, CAPACITY, IAO)
"""Those that take the closest task without waiting."""

ALL = (*OBLIVIOUS, IAO, ILA)

STATIC = ("ila-static-1", "ila-static-2", "ila-static-4", "ila-static-6", "ila-static-8")
"""Static thresholds of Figure 12."""

TITLES = {PURE_FAIR: "PureFair", DELAY: "Delay", LATE: "LATE", CAPACITY: "Capacity", IAO: "IAO", LAO: "LAO", ILA: "ILA"}


def build(name: str, assumed: Assumed = PAPER) -> Profile:
    """Build a fresh scheduler; the oracle gets what is assumed.

    Raises:
        ValueError: There is none of that name.
    """
    match name:
        case "capacity":
            # Slots are alike and small: Hadoop's capacity scheduler of the time keeps no node for anybody.
            return Profile(name=CAPACITY, order=Fifo(), score=LEAST_LOADED, sees_hosts=False)
        case oracle.NAME:
            io, cpu = oracle.caps(assumed)
            return oracle.Oracle(io=io, cpu=cpu).profile()
        case "fair" | "iao":
            return dataclasses.replace(profiles.build(name), sees_hosts=False)
        case _:
            return profiles.build("fair" if name == SEEING else name)
