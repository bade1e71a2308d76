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
        "7a": "The gain is that of drivers (experiment: 24 pairs, 3 seeds): in YARN they wait in line for 130 to 189 s "
        "behind the maps of earlier jobs, under iKayak for 4 to 8 s, since it keeps nodes for them as for "
        "executors. Where it keeps nodes for executors alone, placement gives 2 % (14 pairs, 4 seeds); where jobs "
        "are served by their dominant shares, and drivers come first anyway, it gives nothing (62 and 63 s), the "
        "whole of iKayak 3 %.",
        "7a programs": "Experiment (24 pairs, 3 seeds): the drivers' wait that iKayak saves depends on who stands in "
        "line before, not on the program (Index 130 s, K-means 189 s, PageRank 166 s); what is left (82, 68, 63 s) "
        "is longest for Index.",
        "7b": "Experiment (24 pairs, 3 seeds): λ is 0.08 on average and above θ in 23 % of the time, so suspensions are"
        " 1.2 % of all reducers' time; and YARN's maps are local for 90 % already: were reading a remote block as "
        "quick as a local one, MapReduce would take 1 % less (14 pairs, 4 seeds). There is little that iKayak could"
        " change for MapReduce, and what Spark gets earlier, MapReduce gets later.",
        "7c": "CPUs are held (69 %) by tasks that wait for disks, and by reducers that wait for maps, rather than idle "
        "(experiment, 14 pairs, 4 seeds: with contention off YARN-cluster's own utilisation is 60 instead of 47 %; "
        "iKayak's 61 %).",
        "7c machines": "On T420 and T620 it falls (42 and 43 to 39 %), on the others it rises or stays (14 pairs, 4 "
        "seeds).",
        "8a": "As in Figure 7a: the gain is the drivers', whose nodes are kept too; executors alone give 2 % (14 pairs,"
        " 4 seeds).",
        "8a packed": "The paper's reason, less traffic, is none here: fewer of Spark's reads are local when its "
        "executors share nodes (45 instead of 60 %).",
        "8b": "A blind reservation is not far from the best: 71 % of iKayak's choices (24 pairs, 3 seeds) are of tier "
        "2, nodes where maps alone hold enough, and maps end within a minute wherever they are (14 pairs, 4 seeds: "
        "21 s instead of 26 s; with contention off, 14 s instead of 20 s).",
        "8b k-means": "CPU is what is scarce here, and K-means asks for twice PageRank's cores.",
        "9a": "Without noise and skew of times the error is 24 % still, with both 34 %; linear progress has 66 %, the "
        "class' mean 38 % (12 jobs of each program, one seed).",
        "9b": "Predictions decide only where maps hold too little for an executor: 29 % of the choices (24 pairs, 3 "
        "seeds). Where TeraSort alone runs, an error of 100 % costs Spark 7 % (14 pairs, 4 seeds).",
        "10": "Suspensions end when no map of their job waits, after 16 s on average, and only where λ is above θ; what"
        " they bring (3 % more maps a minute, 14 pairs, 4 seeds) differs in sign from seed to seed.",
        "11a": "YARN's own share is 90 % with three replicas on 15 nodes and jobs of many blocks, so at most 11 % could"
        " be won. With jobs of a quarter of the size YARN has 71 %, locality alone 19 % more, the whole of iKayak "
        "22 % more (14 pairs, 4 seeds).",
        "11c": "Experiment (14 pairs, 4 seeds): were reading a remote block as quick as a local one, MapReduce would "
        "take 1 % less in all; a map reads for 3 s of 37 s. With jobs of a quarter of the size, where 19 % more "
        "maps become local, jobs take 1 % less.",
        "12": "Suspensions end when no map of their job waits, long before T_suspend, so that longer ones do no harm: "
        "536 s with v = 0.5, 543 s with 1, 558 s with 4; 556 s with θ = 0.5 (14 pairs, 20 executors, 4 seeds). The "
        "paper's rise at long suspensions needs reducers that stay suspended without use.",
        "13a": "As in Figure 7b.",
        "13a programs": "A reducer that is early holds a core and memory that maps could have, for longer than the copy"
        " takes that it saves: its computing is most of its time. Experiment (TeraSort, 4 seeds, 0.05 and 0.8): 622"
        " and 598 s in the mix, 246 and 246 s where each job is alone; 96 and 99 s where it is alone and reducers "
        "compute a tenth.",
        "13b": "YARN's own share is above 80 % already, and of the reads only a fifth is Spark's: what its applications"
        " alone may win is less than 4 % of all.",
    }
)
