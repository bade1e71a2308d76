"""YARN-ME: memory elasticity in cluster scheduling.

C. Iorgulescu, F. Dinu, A. Raza, W. Ul Hassan, W. Zwaenepoel, "Don't cry over spilled records: Memory elasticity of
data-parallel applications and its application to cluster scheduling", USENIX ATC 2017.

| module | section |
|---|---|
| `penalty` | 2.2-2.4, 2.7: run time from memory, models from two runs; Algorithm 1, lines 7 and 9: the size |
| `outlook`, `timeline` | 3.2: the timeline generator |
| `decide` | 3.3: Algorithm 1, the disk budget |
| `disks` | 3.3: rates of disks, measured |
| `reserve` | 3.3: node reservations, and who may pass |

Deviations, each with its reason where it is made: the timeline plays the future on a heap instead of adding up
durations (`timeline`); one cycle looks at all nodes on offer (`decide`); the spills' formula is ours (`penalty`).
"""

from boathouse_policies.baselines import LEAST_LOADED, MemoryHeld
from boathouse_policies.framework import PREDICATES, Profile, ReservationAge, RunningTasks, Score
from boathouse_policies.yarn_me.config import Config
from boathouse_policies.yarn_me.decide import Elasticity, LookingAhead
from boathouse_policies.yarn_me.disks import Disks
from boathouse_policies.yarn_me.outlook import Outlook
from boathouse_policies.yarn_me.reserve import Passing
from boathouse_policies.yarn_me.timeline import Timeline

_PAPER = Config()


def build(score: Score = LEAST_LOADED, config: Config = _PAPER, look_ahead: LookingAhead = Timeline) -> Profile:
    """Return the profile `yarn-me`, with an outlook of its own. The score ranks nodes with room for the ideal size."""
    running = RunningTasks()
    elastic = Elasticity(config, score, Outlook(running), look_ahead)
    passing = Passing(elastic)
    return Profile(
        name="yarn-me",
        order=MemoryHeld(),
        filters=(*PREDICATES, elastic),
        score=elastic,
        sizer=elastic,
        reserve=passing,
        controllers=(elastic,),
        observers=(running, elastic.outlook, elastic.disks),
        running=running,
        hooks=(elastic, passing),
        figures=(elastic, ReservationAge()),
        node_driven=True,
    )
