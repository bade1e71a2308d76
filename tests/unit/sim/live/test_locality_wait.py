"""Delay scheduling inside a Spark application: a slot waits for tasks whose blocks are elsewhere."""

import dataclasses

from boathouse_policies import profiles
from boathouse_sim import topology, work
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import Live, Spark, SparkStage
from boathouse_sim.workload import Cluster, Workload


def run(wait_s, stores=True):
    """One executor on n0 and one on n1, ten tasks of 10 s, blocks on n0 alone or on both."""
    n0, n1 = topology.machines(2, cores=1, mem_mb=1024)
    stage = SparkStage(tasks=10, work=work.segment("task", cpu_s=10, read_mb=1), replicas=1)
    app = Spark(id="app", executors=2, executor=work.Container(mem_mb=1024), stages=(stage,), locality_wait_s=wait_s)
    cluster = Cluster.of([n0, dataclasses.replace(n1, stores=stores)])
    driver = Live(
        Workload(name="w", cluster=cluster, apps=(app,), conditions=Conditions(records=True)), profiles.build("fair")
    )
    while driver.advance():
        pass
    return driver.world.finished()


def test_without_it_the_next_task_goes_anywhere():
    assert run(0.0, stores=False).distances[0] == 5


def test_with_it_tasks_run_where_their_blocks_are():
    assert run(30.0, stores=False).node_local_share == 1.0


def test_the_wait_ends():
    patient, hasty = run(3.0, stores=False), run(0.0, stores=False)
    assert patient.distances[0] < 10  # the other executor waits 3 s after a local start, then takes one
    assert patient.makespan_s > hasty.makespan_s


def test_it_costs_the_time_of_the_wait():
    assert run(30.0, stores=False).makespan_s > run(0.0, stores=False).makespan_s
