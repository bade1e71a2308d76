"""Koala: MapReduce clusters that grow and shrink.

B. Ghiţ, N. Yigitbasi, D. Epema, "Resource Management for Dynamic MapReduce Clusters in Multicluster
Systems", MTAGS 2012.

| module | section |
|---|---|
| `cluster` | IV.A, IV.B: core and transient nodes; what a policy sees and answers; what the MR-Runner monitors |
| | IV.C: the ratio F, GSP, GGP, GGDP; VI.C: static clusters, and the constants (`config`) |
| `controller` | IV.B, IV.C: offers by Equipartition, reclaims; the two levels together, as a controller of the cycle |

Each module lists its deviations with their reasons. Nodes that were given back leave once their tasks, and the jobs
that still read map output from them, have ended; the paper does not say what becomes of these. Placing the clusters'
workers is left to the profile's score, as KOALA leaves it to "one of its placement policies".
"""

import dataclasses

from boathouse_policies.framework import Profile, Score, questions
from boathouse_policies.koala.cluster import Cluster, Kind
from boathouse_policies.koala.config import Config, Partition, Policy, Reading
from boathouse_policies.koala.controller import Koala, Terms

_PAPER = Config()
ADDED = Config(report_every_s=0.0)
"""Masters of real clusters report by themselves, and other tasks need not report for them."""


def build(config: Config = _PAPER, *, score: Score = questions.NO_PREFERENCE) -> Profile:
    """Return the profile `koala`, with a state of its own. The score ranks nodes."""
    koala = Koala(config)
    return Profile(name="koala", controllers=(koala,), observers=(koala,), score=score)


def added(profile: Profile, config: Config = ADDED) -> Profile:
    """Return a profile that also grows and shrinks clusters; one that does so already as it is."""
    if any(isinstance(controller, Koala) for controller in profile.controllers):
        return profile
    koala = Koala(config)
    return dataclasses.replace(
        profile, controllers=(*profile.controllers, koala), observers=(*profile.observers, koala)
    )


def of(profile: Profile) -> Koala | None:
    """Return what grows and shrinks clusters in a profile, if anything does."""
    return next((controller for controller in profile.controllers if isinstance(controller, Koala)), None)
