"""Builders of live workloads, and a policy that does what a test says at the times it says."""

from collections.abc import Callable, Sequence

from boathouse_policies import model, profiles
from boathouse_sim import simulation, topology, work
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import Live, MapReduce, Spark, SparkStage
from boathouse_sim.workload import Cluster, Penalty, PenaltyModel, Workload


def container(*segments: work.Segment, mb=1000, cores=1, factor=1.0) -> work.Container:
    penalty = Penalty(model=PenaltyModel.STEP, factor=factor)
    return work.Container(mem_mb=mb, cores=cores, segments=segments, penalty=penalty)


def cpu(seconds=10.0, cores=1.0, name="map") -> work.Segment:
    return work.segment(name, cpu_s=seconds, cores=cores)


def reducer(copy_s=4.0, reduce_s=6.0, mb=1000) -> work.Container:
    copy = work.Segment(name="shuffle", copy_ms=round(copy_s * 1000), copy_mb=copy_s * 50)
    return container(copy, cpu(reduce_s, name="reduce"), mb=mb)


def mapreduce(name="0", maps=1, one=None, reduces=0, reduce=None, **options) -> MapReduce:
    reduce = reduce or (reducer() if reduces else None)
    options = {"replicas": 0, "slow_start": 0.0} | options
    return MapReduce(id=name, maps=maps, map=one or container(cpu()), reduces=reduces, reduce=reduce, **options)


def spark(name="s", executors=2, tasks=(8,), seconds=10.0, cores=2, mb=2000, **options) -> Spark:
    stages = tuple(SparkStage(tasks=n, work=cpu(seconds, name="task")) for n in tasks)
    options = {"startup_ms": 0} | options
    return Spark(id=name, executors=executors, executor=container(mb=mb, cores=cores), stages=stages, **options)


def workload(*apps, nodes=1, cores=4, mb=8000, racks=1, cluster=None, jobs=(), **conditions) -> Workload:
    machines = topology.machines(nodes, cores=cores, mem_mb=mb, racks=racks)
    return Workload(
        name="live",
        cluster=cluster or Cluster.of(machines),
        apps=apps,
        jobs=jobs,
        conditions=Conditions(**({"records": True, "suspend_ms": 0} | conditions)),
    )


def run(found: Workload, profile="fifo", **options):
    return simulation.simulate(found, profile, **options)


def records(found: Workload, profile="fifo", seed=0):
    """The truth of each attempt, in order of its end."""
    driver = Live(found, profiles.build(profile) if isinstance(profile, str) else profile, seed=seed)
    while driver.advance():
        pass
    driver.world.finished()
    return driver.world.records


class Script:
    """A controller that decides at given seconds, and an observer of all that happens.

    Args:
        decisions: What it decides from a second on, once: a function of the events so far.
    """

    report_every_s = 0.0
    measure_every_s = 0.0

    def __init__(self, decisions: dict[float, Callable[[list], Sequence[model.Decision]]]) -> None:
        self.left = dict(sorted(decisions.items()))
        self.events: list[model.Event] = []

    def advise(self, _queue, view):
        due = [at for at in self.left if at <= view.now_s]
        return [one for at in due for one in self.left.pop(at)(self.events)]

    def observe(self, event):
        self.events.append(event)

    def dump(self):
        return {}

    def load(self, state):
        pass

    def seen(self, kind):
        return [event for event in self.events if isinstance(event, kind)]
