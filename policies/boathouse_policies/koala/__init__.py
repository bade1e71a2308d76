"""Koala: MapReduce clusters that grow and shrink.

B. Ghiţ, N. Yigitbasi, D. Epema, "Resource Management for Dynamic MapReduce Clusters in Multicluster
Systems", MTAGS 2012.

| module | section |
|---|---|
| `growers` | IV.C: the ratio F, GSP, GGP, GGDP; VI.C: static clusters, and the constants (`config`) |
| `provider` | IV.B, IV.C: offers by Equipartition, reclaims |
| `cluster` | IV.A, IV.B: core and transient nodes; what a policy sees and answers; what the MR-Runner monitors |
| `controller` | IV.B, IV.C: the two levels together, as a controller of the cycle |

Each module lists its deviations with their reasons. Nodes that were given back leave once their tasks, and the jobs
that still read map output from them, have ended; the paper does not say what becomes of these. Placing the clusters'
workers is left to the profile's score, as KOALA leaves it to "one of its placement policies".
"""

from __future__ import annotations

from boathouse_policies.framework import Profile, Score, questions
from boathouse_policies.koala.cluster import Change, Cluster, Kind
from boathouse_policies.koala.config import Config, Partition, Policy, Reading
from boathouse_policies.koala.controller import Koala
from boathouse_policies.koala.growers import Grower, grower, load

__all__ = [
    "Change",
    "Cluster",
    "Config",
    "Grower",
    "Kind",
    "Koala",
    "Partition",
    "Policy",
    "Reading",
    "build",
    "grower",
    "load",
]

_PAPER = Config()


def build(config: Config = _PAPER, *, score: Score = questions.NO_PREFERENCE) -> Profile:
    """The profile `koala`. Each call builds a policy with a state of its own.

    Args:
        config: The constants; the paper's by default.
        score: Ranks nodes.
    """
    koala = Koala(config)
    return Profile(name="koala", controllers=(koala,), observers=(koala,), score=score)
