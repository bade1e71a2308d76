"""Delay scheduling inside a Spark application: a slot waits for tasks whose blocks are elsewhere."""

import dataclasses

from boathouse_sim import topology, work
from boathouse_sim.live import Spark, SparkStage
from boathouse_sim.workload import Cluster
from tests.builders import simulations


def spark_results(wait_s):
    """One executor on n0 and one on n1, ten tasks of 10 s, blocks on n0 alone."""
    n0, n1 = topology.machines(2, cores=1, mem_mb=1024)
    stage = SparkStage(tasks=10, work=work.segment("task", cpu_s=10, read_mb=1), replicas=1)
    app = Spark(id="app", executors=2, executor=work.Container(mem_mb=1024), stages=(stage,), locality_wait_s=wait_s)
    cluster = Cluster.of([n0, dataclasses.replace(n1, stores=False)])
    return simulations.results(simulations.live_workload(app, cluster=cluster), "fair")


def test_without_a_locality_wait_the_next_task_is_placed_anywhere():
    assert spark_results(0.0).distances[0] == 5


def test_with_it_tasks_run_where_their_blocks_are():
    assert spark_results(30.0).node_local_share == 1.0


def test_the_wait_ends():
    patient, hasty = spark_results(3.0), spark_results(0.0)
    assert patient.distances[0] < 10  # the other executor waits 3 s after a local start, then takes one
    assert patient.makespan_s > hasty.makespan_s


def test_it_costs_the_time_of_the_wait():
    assert spark_results(30.0).makespan_s > spark_results(0.0).makespan_s
