"""Workloads of the simulator, and runs of them to their end.

What a test does not name does not matter to it: every field has a default.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from boathouse_policies import model, profiles
from boathouse_sim import simulation, topology, work
from boathouse_sim.conditions import Conditions, Outage, Outages
from boathouse_sim.live import Live, MapReduce, Spark, SparkStage
from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Workloads of phases


def phase(tasks=1, seconds=10.0, mb=1000, kind="map", cores=1, model="step", factor=1.0) -> Phase:
    return Phase(
        kind=kind,
        tasks=tasks,
        duration_ms=round(seconds * 1000),
        mem_ideal_mb=mb,
        cores=cores,
        penalty=Penalty(model=PenaltyModel(model), factor=factor),
    )


def job(name="0", *phases: Phase, at_s=0.0, after=None) -> JobSpec:
    submit_ms = None if after is not None else round(at_s * 1000)
    return JobSpec(id=name, phases=phases or (phase(),), submit_ms=submit_ms, after=after)


def workload(*jobs: JobSpec, nodes=1, node_mb=10_000, cores=16, racks=1) -> Workload:
    cluster = Cluster(nodes=nodes, node_mem_mb=node_mb, node_cores=cores, racks=racks)
    return Workload(name="test", cluster=cluster, jobs=jobs or (job(),))


phases = st.builds(
    phase,
    tasks=st.integers(1, 5),
    seconds=st.integers(0, 40),
    mb=st.integers(1, 40).map(lambda hundreds: hundreds * 100),
    cores=st.integers(1, 4),
    kind=st.sampled_from(["map", "reduce"]),
    model=st.sampled_from(["step", "sawtooth"]),
    factor=st.sampled_from([1.0, 1.5, 3.0]),
)


@st.composite
def drawn_workloads(draw: st.DrawFn) -> Workload:
    """A few jobs of one or two phases on a few nodes."""
    jobs = [
        job(str(i), *draw(st.lists(phases, min_size=1, max_size=2)), at_s=draw(st.integers(0, 60)))
        for i in range(draw(st.integers(1, 5)))
    ]
    return workload(*jobs, nodes=draw(st.integers(1, 3)), node_mb=4000, cores=4)


# Live workloads


def container(*segments: work.Segment, mb=1000, cores=1, factor=1.0) -> work.Container:
    penalty = Penalty(model=PenaltyModel.STEP, factor=factor)
    return work.Container(mem_mb=mb, cores=cores, segments=segments, penalty=penalty)


def cpu(seconds=10.0, cores=1.0, name="map") -> work.Segment:
    """A segment that computes."""
    return work.segment(name, cpu_s=seconds, cores=cores)


def mapper(seconds=10.0, mb=1000) -> work.Container:
    """A map that only computes."""
    return container(cpu(seconds), mb=mb)


def reducer(copy_s=4.0, reduce_s=6.0, mb=1000) -> work.Container:
    copy = work.Segment(name="shuffle", copy_ms=round(copy_s * 1000), copy_mb=copy_s * 50)
    return container(copy, cpu(reduce_s, name="reduce"), mb=mb)


def mapreduce(name="0", maps=1, map=None, reduces=0, reduce=None, **options) -> MapReduce:  # noqa: A002 - the job's field
    reduce = reduce or (reducer() if reduces else None)
    options = {"replicas": 0, "slow_start": 0.0} | options
    return MapReduce(id=name, maps=maps, map=map or mapper(), reduces=reduces, reduce=reduce, **options)


def spark(name="s", executors=2, tasks=(8,), seconds=10.0, cores=2, mb=2000, **options) -> Spark:
    stages = tuple(SparkStage(tasks=n, work=cpu(seconds, name="task")) for n in tasks)
    options = {"startup_ms": 0, "stages": stages} | options
    return Spark(id=name, executors=executors, executor=container(mb=mb, cores=cores), **options)


def outages(*given: tuple[str, float, float | None], **random) -> Outages:
    """Outages of (node, from second, to second), and random ones."""
    return Outages(given=tuple(Outage(node=name, from_s=begin, to_s=end) for name, begin, end in given), **random)


def live_workload(*apps, nodes=1, cores=4, mb=8000, racks=1, cluster=None, jobs=(), **conditions) -> Workload:
    machines = topology.machines(nodes, cores=cores, mem_mb=mb, racks=racks)
    return Workload(
        name="live",
        cluster=cluster or Cluster.of(machines),
        apps=apps,
        jobs=jobs,
        conditions=Conditions(**({"records": True, "suspend_ms": 0} | conditions)),
    )


# Runs


def results(found: Workload, profile="fifo", **options):
    """What a simulation measures."""
    return simulation.simulate(found, profile, **options)


def job_times_s(found: Workload, profile="fifo", **options) -> tuple[float, ...]:
    return results(found, profile, **options).job_times_s


def run(driver, watch: Callable | None = None):
    """The world of a simulation that was run to its end; `watch` gets it after every event."""
    while driver.advance():
        if watch is not None:
            watch(driver.world)
    return driver.world


def live_world(found: Workload, profile="fifo", seed=0, watch: Callable | None = None):
    """The world after a live simulation."""
    built = profiles.build(profile) if isinstance(profile, str) else profile
    world = run(Live(found, built, seed=seed), watch)
    world.finished()
    return world


def records(found: Workload, profile="fifo", seed=0):
    """The truth of each attempt of a live simulation, in order of its end."""
    return live_world(found, profile, seed).records


def placement_log(driver) -> list[tuple[float, str, str, int]]:
    """(milliseconds, task, node, MiB) of each placement of a simulation, in order."""
    made, place = [], driver.world.place

    def record(decision):
        size_mib = decision.resources.memory_bytes >> 20
        made.append((driver.world.clock.now_ms, decision.task.id, decision.node, size_mib))
        return place(decision)

    driver.world.place = record
    run(driver)
    return made


# Decisions of a script


class Script:
    """A controller that decides at given seconds, and an observer of all events.

    Args:
        decisions: What it decides from a second on, once: a function of the events so far.
    """

    report_every_s = 0.0
    measure_every_s = 0.0

    def __init__(self, decisions: dict[float, Callable[[list], Sequence[model.Decision]]] | None = None) -> None:
        self.left = dict(sorted((decisions or {}).items()))
        self.events: list[model.Event] = []

    def advise(self, _queue, view):
        due = [at for at in self.left if at <= view.now_s]
        return [decision for at in due for decision in self.left.pop(at)(self.events)]

    def observe(self, event):
        self.events.append(event)

    def dump(self):
        return {}

    def load(self, state):
        pass

    def of(self, kind):
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def run(self, found: Workload, watch: Callable | None = None):
        """Results of a live simulation in which it decides."""
        profile = dataclasses.replace(profiles.build("fifo"), controllers=(self,), observers=(self,))
        return live_world(found, profile, watch=watch).finished()


def suspend_first(events, until_s=None):
    """A decision to suspend the task that started first."""
    started = next(event for event in events if isinstance(event, model.Started))
    task = model.Task(id=started.task, task_class=started.task_class)
    size = model.Resources(cpu_milli=0, memory_bytes=4000 << 20)
    return [model.Suspend(task=task, node=started.node, resources=size, until_s=until_s, reason="test")]


def suspend_until(until_s):
    """A decision to suspend the task that started first until a second."""
    return lambda events: suspend_first(events, until_s)


def resume_first(events):
    """A decision to resume the task that started first."""
    (decision,) = suspend_first(events)
    return [model.Resume(task=decision.task, node=decision.node, resources=decision.resources, reason="test")]


def resize_first(cpu_milli):
    """A decision to give the task that started first this much CPU."""

    def decide(events):
        (decision,) = suspend_first(events)
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=1000 << 20)
        return [model.Resize(task=decision.task, node=decision.node, resources=size, reason="test")]

    return decide
