"""Random workloads for the simulator's shells: phased jobs at once and under heartbeats, and live applications."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.fspy.prediction import Features
from boathouse_sim import probing, topology, work
from boathouse_sim.conditions import Conditions, Outage, Outages, Saturation
from boathouse_sim.live import DynamicAllocation, MapReduce, Spark, SparkStage
from boathouse_sim.work import Pool
from boathouse_sim.workload import Cluster, Errors, JobSpec, Penalty, PenaltyModel, Phase, Timing, Workload

from .drawing import Draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_sim.topology import Host, Machine
    from boathouse_sim.work import App

_SEED = 20_261
_NAMESPACES = ("", "a", "b")
_PROGRAMS = ("", "sort", "grep")
_LARGEST_MB, _LARGEST_CORES = 6000, 4  # of a task: any node holds it, and any queue's limits allow it


def phased(index: int) -> tuple[Workload, Errors]:
    """Draw jobs of phases on equal nodes or on machines of several kinds, and how they stray from their estimates."""
    random = Draw(np.random.default_rng([_SEED, 0, index]))
    machines = _machines(random)
    jobs = _chained(random, [_job(random, i) for i in range(random.between(4, 14))])
    timing = Timing(
        am_container_mb=random.pick([0, 500]),
        am_container_cores=random.pick([0, 1]),
        allocs_per_node_heartbeat=random.pick([1, 1, 3]),
    )
    errors = random.pick([Errors(), Errors(), Errors(duration=(-0.3, 0.5), memory=(-0.2, 0.2), penalty=(-0.3, 0.3))])
    cluster = _cluster(random, machines)
    queues = _queues(random, machines)
    return Workload(
        name=f"{index:03}", cluster=cluster, jobs=_queued(random, jobs, queues), timing=timing, queues=queues
    ), errors


def live(index: int) -> Workload:
    """Draw MapReduce jobs and Spark applications, most with contention, outages and launch times."""
    random = Draw(np.random.default_rng([_SEED, 1, index]))
    machines: Sequence[Machine] = _machines(random)
    hosts: Sequence[Host] = ()
    if random.chance(0.4):
        machines, hosts = topology.virtual(
            random.between(2, 4), machines_per_host=random.between(2, 3), cores=4, mem_mb=8000, host_cores=10.0, racks=2
        )
    queues = _queues(random, machines)
    apps = [_application(random, i, queues) for i in range(random.between(3, 8))]
    conditions = Conditions(
        contention=random.pick([None, Saturation()]),
        outages=_outages(random, machines) if random.chance(0.4) else Outages(),
        jitter=random.pick([0.0, 0.2]),
        launch_ms=random.pick([0, 1000]),
        tick_ms=random.pick([2000, 5000]),
        pools=(Pool(name="store", mb_per_s=100.0),) if random.chance(0.2) else (),
    )
    return Workload(
        name=f"{index:03}",
        cluster=Cluster.of(machines, hosts),
        apps=tuple(apps),
        jobs=tuple(_job(random, 100 + i) for i in range(random.pick([0, 0, 2]))),
        conditions=conditions,
        queues=queues,
    )


def _machines(random: Draw) -> list[Machine]:
    racks = random.between(1, 3)
    found = topology.machines(
        random.between(2, 8), cores=random.pick([4, 8]), mem_mb=random.pick([8000, 16000]), racks=racks
    )
    if random.chance(0.4):
        found += topology.machines(random.between(1, 3), cores=16, mem_mb=24000, racks=racks, prefix="x", speed=1.5)
    return found


def _cluster(random: Draw, machines: Sequence[Machine]) -> Cluster:
    if random.chance(0.5):
        return Cluster.of(machines)
    one = machines[0]
    return Cluster(nodes=len(machines), node_mem_mb=one.mem_mb, node_cores=one.cores, racks=2)


def _queues(random: Draw, machines: Sequence[Machine]) -> tuple[model.Queue, ...]:
    """Usually one queue; limits are at least the largest gang."""
    if random.chance(0.5):
        return ()
    cores = max(4 * _LARGEST_CORES + 1, sum(one.cores for one in machines) // 2)
    default = model.Queue.of(model.QueueName("default"), weight=random.pick([1.0, 2.0]))
    limits: dict[str, int] = random.pick([{}, {"cpu": round(cores * 1000)}, {"pods": 10}])
    second = model.Queue.of(model.QueueName("second"), weight=random.pick([1.0, 3.0]), limits=limits)
    return (default, second)


def _queued(random: Draw, jobs: Sequence[JobSpec], queues: Sequence[model.Queue]) -> tuple[JobSpec, ...]:
    names = [str(queue.name) for queue in queues] or ["default"]
    return tuple(dataclasses.replace(job, queue=random.pick(names)) for job in jobs)


# Phased jobs


def _phase(random: Draw, kind: str, most: int) -> Phase:
    step = kind != "reduce"
    return Phase(
        kind=kind,
        tasks=random.between(1, most),
        duration_ms=random.between(10, 300) * 100,
        mem_ideal_mb=random.pick([500, 1000, 2000, 3000, _LARGEST_MB]),
        cores=random.pick([1, 1, 1, 2, _LARGEST_CORES]),
        penalty=Penalty(
            model=PenaltyModel.STEP if step else PenaltyModel.SAWTOOTH, factor=random.pick([1.0, 1.2, 1.5, 3.0])
        ),
        input_bytes=random.pick([None, 128 << 20]),
        counters=(("cpu_s", random.factor(0.5, 10)), ("read_bytes", random.factor(1e6, 1e9))) if step else (),
        when_ended=random.chance(0.3),
    )


def _job(random: Draw, i: int) -> JobSpec:
    kinds = random.pick(
        [("map",), ("map", "reduce"), ("map", "reduce"), ("map", "reduce", "map"), ("executor",), ("uber",)]
    )
    master = Phase(kind="driver", tasks=1, duration_ms=2000, mem_ideal_mb=500) if random.chance(0.2) else None
    predicted = random.chance(0.4)
    return JobSpec(
        id=str(i),
        phases=tuple(_phase(random, kind, 1 if kind == "uber" else 16) for kind in kinds),
        submit_ms=random.between(0, 60_000) if random.chance(0.8) else 0,
        program=random.pick(_PROGRAMS),
        master=master,
        probe=_probe(random) if predicted else None,
        stated=not predicted,
        namespace=random.pick(_NAMESPACES),
    )


def _probe(random: Draw) -> Phase:
    measured = Features(
        maps=random.between(1, 20),
        reduces=random.between(1, 4),
        map_input_bytes=random.factor(1e8, 2e9),
        map_function_s=random.factor(10, 200),
        map_output_bytes=random.factor(1e7, 1e9),
        map_output_records=random.factor(1e5, 1e7),
        reduce_function_s=random.factor(5, 100),
        reduce_output_bytes=random.factor(1e6, 1e8),
        reduce_input_records=random.factor(1e5, 1e7),
    )
    counters = tuple(probing.counters_of(measured, random.factor(0.05, 0.5)).items())
    return Phase(kind="probe", tasks=1, duration_ms=random.between(1000, 8000), mem_ideal_mb=1000, counters=counters)


def _chained(random: Draw, jobs: Sequence[JobSpec]) -> list[JobSpec]:
    """Some jobs are submitted at the end of the one before."""
    return [
        dataclasses.replace(job, submit_ms=None, after=jobs[i - 1].id) if i and random.chance(0.15) else job
        for i, job in enumerate(jobs)
    ]


# Applications


def _application(random: Draw, i: int, queues: Sequence[model.Queue]) -> App:
    queue = random.pick([str(queue.name) for queue in queues] or ["default"])
    submit_ms = random.between(0, 40_000)
    namespace = random.pick(_NAMESPACES)
    if random.chance(0.6):
        return _map_reduce(random, i, queue, namespace, submit_ms)
    return _spark(random, i, queue, namespace, submit_ms)


def _map_reduce(random: Draw, i: int, queue: str, namespace: str, submit_ms: int) -> MapReduce:
    read_mb, pooled = random.pick([0.0, 64.0, 128.0]), random.chance(0.1)
    one = work.Container(
        mem_mb=random.pick([500, 1000, 2000, 4000]),
        cores=random.pick([1, 1, 2]),
        segments=(work.segment("map", cpu_s=random.factor(1, 15), read_mb=read_mb, write_mb=random.factor(1, 50)),),
        penalty=Penalty(model=PenaltyModel.STEP, factor=random.pick([1.0, 1.5])),
    )
    reduces = random.between(0, 4)
    reduce = work.Container(
        mem_mb=random.pick([1000, 3000]),
        cores=1,
        segments=(
            work.Segment(name="shuffle", copy_ms=random.between(500, 8000), copy_mb=random.factor(10, 200)),
            work.segment("sort", cpu_s=1.0),
            work.segment("reduce", cpu_s=random.factor(1, 15), write_mb=random.factor(1, 50)),
        ),
        penalty=Penalty(model=PenaltyModel.SAWTOOTH, factor=random.pick([1.0, 2.0])),
    )
    assert not pooled or read_mb >= 0
    return MapReduce(
        id=str(i),
        maps=random.between(2, 24),
        map=one,
        reduces=reduces,
        reduce=reduce if reduces else None,
        slow_start=random.pick([0.05, 0.5, 1.0]),
        replicas=random.pick([0, 1, 3]),
        submit_ms=submit_ms,
        program=random.pick(_PROGRAMS),
        queue=queue,
        namespace=namespace,
    )


def _spark(random: Draw, i: int, queue: str, namespace: str, submit_ms: int) -> Spark:
    executors = random.between(1, 4)
    gang = random.between(1, min(executors, 3)) if random.chance(0.4) else 0
    dynamic = DynamicAllocation(least=1, most=5, idle_s=5.0) if not gang and random.chance(0.3) else None
    stages = tuple(
        SparkStage(
            tasks=random.between(1, 12),
            work=work.segment("task", cpu_s=random.factor(1, 10), read_mb=random.pick([0.0, 64.0])),
            replicas=random.pick([0, 2]),
        )
        for _ in range(random.between(1, 3))
    )
    return Spark(
        id=str(i),
        executors=executors,
        executor=work.Container(mem_mb=random.pick([1000, 3000, _LARGEST_MB]), cores=random.pick([1, 2, 4])),
        stages=stages,
        driver=work.Container(mem_mb=500, cores=1) if gang or random.chance(0.6) else None,
        min_executors=gang,
        startup_ms=random.pick([0, 3000]),
        dynamic=dynamic,
        locality_wait_s=random.pick([0.0, 3.0]),
        submit_ms=submit_ms,
        program=random.pick(_PROGRAMS),
        queue=queue,
        namespace=namespace,
    )


def _outages(random: Draw, machines: Sequence[Machine]) -> Outages:
    if random.chance(0.5):
        return Outages(mean_time_to_failure_s=120, mean_time_to_recovery_s=20)
    node, from_s = random.pick(machines).name, random.factor(5, 40)
    return Outages(given=(Outage(node=node, from_s=from_s, to_s=from_s + random.factor(5, 30)),))
