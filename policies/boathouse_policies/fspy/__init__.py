"""FSPY: size-based fair order of jobs.

Y. Liu, Y. Zeng, X. Piao, "High-Responsive Scheduling with MapReduce Performance Prediction on Hadoop YARN".

| module | section |
|---|---|
| `jobs` | II.C, II.D, III.A: sizes and average parallelism bounds, eqs 3, 4, 5, 9 |
| `prediction` | III.A: Algorithm 1, the input of a probe; eqs 6, 7, 8, generalised least squares |
| `virtual` | III.B: Algorithms 2 (VRA) and 3 (VSC), eq. 10; a fair world for each queue and namespace |
| `order` | III.C: probing and production queue, size-based and fair sub-queue; ours: nothing starves |

The simulator has the rest: `boathouse_lab.reproduce.fspy_rcp` (IV.C, eq. 11).

Each module lists its deviations with their reasons.
"""

from boathouse_policies.framework import Profile, ReservationAge, Score, questions
from boathouse_policies.fspy.config import Config
from boathouse_policies.fspy.order import AgeingReserve, Group, SizeBased
from boathouse_policies.fspy.prediction import Prediction, Source

_PAPER = Config()


def build(config: Config = _PAPER, *, score: Score = questions.NO_PREFERENCE) -> Profile:
    """Return the profile `fspy`, with a state of its own. The score ranks nodes: FSPY itself says nothing of nodes."""
    order = SizeBased(config)
    reserve = AgeingReserve(order)
    return Profile(
        name="fspy",
        order=order,
        score=score,
        reserve=reserve,
        observers=(order,),
        hooks=(order, reserve),
        figures=(order, ReservationAge()),
    )
