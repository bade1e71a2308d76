"""iKayak: Spark executors beside MapReduce.

D. Cheng, X. Zhou, P. Lama, J. Wu, C. Jiang, "Cross-platform Resource Scheduling for Spark and MapReduce on YARN".

| module | section |
|---|---|
| `placement` | 3.1.1, 3.1.3: Algorithms 1 and 2, executors' nodes and reservations |
| `remaining`, `predictors` | 3.1.2: the self-learning fuzzy model, eqs 1-6; a reducer's lags; a model for each class |
| `book` | the maps and reducers that run, with predicted remaining times; the share of local maps |
| `suspension` | 3.2: reducers that wait for maps lend their CPU to them |
| `shrinking` | 3.3: Algorithm 3, and maps where their input is |

Each module lists its deviations with their reasons. All pieces act only on their own stages: executors and drivers
(`placement`), maps (`shrinking`), reducers (`suspension`, which also keeps lent CPU from all but maps).
"""

from collections.abc import Callable
from types import MappingProxyType

from boathouse_policies.baselines import LEAST_LOADED, FairShare
from boathouse_policies.framework import PREDICATES, Figures, JobOrder, Profile, RunningTasks, Score, questions
from boathouse_policies.ikayak.book import SPARK, Book
from boathouse_policies.ikayak.config import Config, Shrink
from boathouse_policies.ikayak.placement import Executors, MostFree
from boathouse_policies.ikayak.shrinking import LocalFirst, Shrinking
from boathouse_policies.ikayak.suspension import Suspension
from boathouse_policies.model import Stage

_PAPER = Config()


class Parts:
    """The pieces of one iKayak, for profiles that combine policies. They share the book, and no state with others."""

    def __init__(
        self,
        running: RunningTasks,
        config: Config = _PAPER,
        suspension: Callable[[Config, Book], Suspension] = Suspension,
    ) -> None:
        self.book = Book(config, running)  # Observer, after `RunningTasks`: what runs, the models, and μ
        self.suspension = suspension(config, self.book)  # Controller, Filter and Hooks of reducers and their lent CPU
        self.executors = Executors(config, self.book, self.suspension)  # Reserve and Hooks of executors and drivers
        self.most_free = MostFree(self.suspension)  # Score of executors and drivers
        self.shrinking = Shrinking(config, self.book)  # Sizer, Filter and Hooks of maps
        self.figures: tuple[Figures, ...] = (self.suspension, self.shrinking, self.executors)


def build(score: Score = LEAST_LOADED, config: Config = _PAPER, order: JobOrder | None = None) -> Profile:
    """Build the profile `ikayak`, with a state of its own; order (default: fair) and score are for what it leaves."""
    running = RunningTasks()
    found = Parts(running, config)
    scores = dict[Stage, Score](dict.fromkeys(SPARK, found.most_free) if config.placement else {})
    if config.local_first:
        scores[Stage.MAP] = LocalFirst(found.shrinking, score)
    return Profile(
        name="ikayak",
        order=order or FairShare(),
        filters=(*PREDICATES, found.suspension, found.shrinking),
        score=score,
        scores=MappingProxyType(scores),
        sizer=found.shrinking,
        reserve=found.executors if config.placement else questions.NO_RESERVE,
        controllers=(found.suspension,) if config.suspension else (),
        observers=(running, found.book),
        running=running,
        hooks=(found.suspension, found.shrinking, *((found.executors,) if config.placement else ())),
        figures=found.figures,
    )
