"""Why rows do not hold, as experiments showed; by figure."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "6": "Nearly all of WordCount's time is computing, which takes 1 / 0.8 as long; only reading is slower "
        "elsewhere. It takes maps that read for longer than an eighth of the time that they compute.",
        "7a": "Any reservation gives most of it. Experiment (14 pairs, 2 seeds): without one (profile fair) "
        "Spark takes 227 s, with blind ones 64 s, under iKayak 63 s. What the choice of nodes adds, "
        "contention takes back: with contention off iKayak is 14 % below YARN-cluster. With jobs first "
        "in, first out, where YARN's drivers wait in line too, it is 66 % below.",
        "7a programs": "",
        "7b": "Experiment (14 pairs): λ is 0.08 on average and above θ in a fifth of the time, so suspensions "
        "are 0.4 % of all reducers' time, and YARN's maps are local for more than 90 % already. There is "
        "little that iKayak could change for MapReduce.",
        "7c": "CPUs are held (77 %) by tasks that wait for disks, and by reducers that wait for maps, rather "
        "than idle (experiment: with contention off YARN-cluster's own utilisation is 59 instead of 45 "
        "%; iKayak's 61 %).",
        "7c machines": "",
        "8a": "Reservations are a third of Spark's time here. Placement alone is 12 % below SpreadOut with contention "
        "off, 4 % with disks and networks in proportion to cores (14 pairs, 2 seeds); on the testbed as it is, "
        "executors meet on the servers of 24 cores and one disk.",
        "8a packed": "The paper's reason, less traffic, is none here: fewer of Spark's reads are local when its "
        "executors share nodes (45 instead of 62 %).",
        "8b": "A blind reservation is not far from the best: 82 % of iKayak's choices (14 pairs) are of tier "
        "2, nodes where maps alone hold enough, and maps end within a minute wherever they are. With "
        "arrivals every 30 s placement alone reserves for 12.6 s, SpreadOut for 18.4 s.",
        "8b k-means": "CPU is what is scarce here, and K-means asks for twice PageRank's cores.",
        "9a": "Without noise and skew of times the error is 24 % still, with both 34 %; linear progress has 66 "
        "%, the class' mean 38 % (12 jobs of each program, one seed).",
        "9b": "Predictions decide only where maps hold too little for an executor: 18 % of the choices (14 "
        "pairs; 7 % with arrivals every 30 s, 25 % with 12 executors). Where TeraSort alone runs, an "
        "error of 100 % costs nothing either.",
        "10": "Suspensions last 16 to 18 s on average; what they bring differs in sign from seed to seed (the "
        "interval).",
        "11a": "YARN's own share is above 90 % with three replicas on 15 nodes and jobs of many blocks, so at "
        "most 10 % could be won. With jobs of a quarter of the size YARN has 76 %, locality alone 7 % "
        "more, the whole of iKayak 15 % more.",
        "11c": "",
        "12": "Suspensions end when no map of their job waits, long before T_suspend: with v = 0.5 their "
        "number and mean length are those with v = 1 (10 pairs, 20 executors).",
        "13a": "As in Figure 7b.",
        "13a programs": "",
        "13b": "YARN's own share is above 80 % already, and of the reads only a fifth is Spark's: what its "
        "applications alone may win is less than 4 % of all.",
    }
)
