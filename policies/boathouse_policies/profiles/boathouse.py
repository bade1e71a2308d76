"""The profile `boathouse`, which combines the papers.

| decision | whose it is |
|---|---|
| whose turn | FSPY: least remaining virtual size first |
| a driver's or executor's node | iKayak: most free; else nodes are reserved for it |
| a map's or reducer's node | ILA: not beside neighbours that harm, while it pays; the closest; then the least slowed |
| its memory | YARN-ME: the ideal, or less where that pays and the job ends no later, in FSPY's order |
| its CPU | iKayak: less, for maps at their input, where memory is ideal |
| reducers that lack map output | iKayak: suspended where that pays; their CPU goes to maps |
| executors beyond the minimum | none while jobs that go before wait |
| clusters of nodes | Koala: by the controller of its own clusters (`koala`) |

What pays, `worth` says; `guard` switches a part off that turns out not to.

Where two would decide the same:

1. ILA's refusal stands: where neighbours would harm, nothing is made smaller to fit.
2. Closeness before size: at its input a task takes less memory, or a share of the CPU, before it goes elsewhere whole
   (iKayak's Figure 6; YARN-ME bounds what it costs by the job's end). Only where no close node will do, it waits (ILA).
3. Of one task either memory is taken or CPU, never both: YARN-ME first.
4. A node that iKayak or ageing reserves is open to tasks that end before its owner could start there (YARN-ME's rule),
   for a while to jobs that go before the owner, and to nobody else. YARN-ME itself reserves none: FSPY's order with
   ageing takes that part.
5. CPU that a suspended reducer lends goes to maps only, its own job's first.
6. What FSPY puts first and cannot be placed is passed over: the next in order goes on.
"""

from __future__ import annotations

import dataclasses
import functools

from boathouse_policies import fspy, ikayak, ila, model, yarn_me
from boathouse_policies.baselines import LEAST_LOADED, Closest
from boathouse_policies.framework import PREDICATES, Profile, ReservationAge, RunningTasks, Score
from boathouse_policies.profiles.guard import Guard
from boathouse_policies.profiles.sharing import Ahead, ByStage, OneOfTwo, Unhindered
from boathouse_policies.profiles.worth import Growing, Lending, Prices, Refusing, Smaller


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The constants of each paper, and what the combination changes in them.

    Attributes:
        fspy: A job of unknown size is ranked as one whose tasks take 10 s (the paper: it goes first while such jobs
            hold less than their share): small jobs waited for nodes that were reserved for large ones of unknown size.
            With 5 and 20 s mean job times are the same. A job that outlived its virtual size is ranked by the work that
            is left of it, and small jobs are not probed. Sizes are predicted by the model that has predicted the
            program's jobs best so far.
        ikayak: It shrinks CPU only, or memory would be shrunk twice. Remaining times are predicted by what has
            predicted the program's reducers best so far.
        ila: It refuses hosts where a task would take twice as long (the paper: any longer). Under the paper's threshold
            tasks waited for longer than neighbours would have cost them; as a rank, slowdowns of less count in full.
            Slowdowns are predicted by the model that has predicted the program's tasks best so far.
    """

    fspy: fspy.Config = dataclasses.field(
        default_factory=lambda: fspy.Config(assumed_task_s=10.0, late_first=False, probed_from=0.1, best_model=True)
    )
    ikayak: ikayak.Config = dataclasses.field(
        default_factory=lambda: ikayak.Config(shrink=ikayak.Shrink.CPU, best_predictor=True)
    )
    ila: ila.Config = dataclasses.field(default_factory=lambda: ila.Config(threshold=2.0, best_model=True))
    yarn_me: yarn_me.Config = dataclasses.field(default_factory=yarn_me.Config)


_PAPERS = Config()


def build(score: Score = LEAST_LOADED, config: Config = _PAPERS) -> Profile:
    """Return the profile `boathouse`. Each call builds a policy with a state of its own.

    Args:
        score: Ranks nodes, for stages that none of the papers speaks of.
        config: The constants.
    """
    order = fspy.SizeBased(config.fspy)
    running, prices, guard = RunningTasks(), Prices(), Guard()
    spark = ikayak.Parts(running, config.ikayak, functools.partial(Lending, prices=prices, guard=guard))
    interference, delay = Refusing(config.ila, guard), ila.AdaptiveDelay(config.ila)
    look_ahead = functools.partial(yarn_me.Timeline, job_key=order.expected)
    regular = Unhindered(interference, spark.shrinking)
    elastic = Smaller(config.yarn_me, regular, yarn_me.Outlook(running), look_ahead, prices, guard)
    sizes = OneOfTwo(elastic, spark.shrinking)
    nearest = Closest(elastic, ila.LEVEL)
    passing, retry = yarn_me.Passing(elastic), ila.Retry(interference)
    ahead, growing = Ahead(order), Growing(order, delay)
    aged = fspy.AgeingReserve(order, apart=ikayak.SPARK)
    return Profile(
        name="boathouse",
        order=order,
        filters=(*PREDICATES, spark.suspension, sizes, elastic, interference),
        score=score,
        scores={
            **dict.fromkeys((model.Stage.MAP, model.Stage.REDUCE), nearest),
            **dict.fromkeys(ikayak.SPARK, spark.most_free),
        },
        patience=growing,
        sizer=sizes,
        reserve=ByStage(spark.executors, aged, retry, passing, ahead),
        controllers=(prices, elastic, spark.suspension),
        observers=(running, order, elastic.outlook, elastic.disks, spark.book, interference, delay, guard),
        running=running,
        figures=(order, interference, elastic, ReservationAge(apart=ikayak.SPARK), guard, *spark.figures),
        hooks=(
            order,
            aged,
            passing,
            ahead,
            growing,
            spark.executors,
            spark.suspension,
            spark.shrinking,
            elastic,
            interference,
            delay,
        ),
    )
