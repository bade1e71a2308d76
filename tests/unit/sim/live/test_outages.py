"""Nodes that fail: what ran there runs again, and map output that is still needed is made again."""

import pytest

from boathouse_lab.invariants import Invariants
from boathouse_policies import model, profiles
from boathouse_sim import topology
from boathouse_sim.workload import Cluster, WorkloadError
from tests.builders import simulations


def test_a_task_on_a_node_that_fails_runs_again_elsewhere():
    found = simulations.live_workload(simulations.mapreduce(), nodes=2, outages=simulations.outages(("n0", 4, None)))
    assert simulations.job_times_s(found, watch=Invariants()) == (14.0,)
    assert [record.lost for record in simulations.records(found)] == [True, False]


def test_a_task_waits_for_the_node_to_come_back_where_there_is_no_other():
    found = simulations.live_workload(simulations.mapreduce(), outages=simulations.outages(("n0", 4, 9)))
    assert simulations.job_times_s(found, watch=Invariants()) == (19.0,)


def test_map_output_that_reducers_lack_is_made_again():
    job = simulations.mapreduce(maps=2, reduces=1, slow_start=0.5, reduce=simulations.reducer(copy_s=8, reduce_s=6))
    found = simulations.live_workload(job, nodes=2, cores=2, mb=1000, outages=simulations.outages(("n0", 12, 13)))
    # Maps on both until 10; n0 goes at 12 with its map output, and with the reducer if it runs there.
    kinds = [record.kind for record in simulations.records(found) if not record.lost]
    assert (kinds.count("map"), kinds.count("reduce")) == (3, 1)


@pytest.mark.parametrize(("failed_s", "maps"), [(11.5, 2), (15, 1)])
def test_the_output_of_a_map_is_made_again_only_as_long_as_a_reducer_copies(failed_s, maps):
    job = simulations.mapreduce(reduces=1, slow_start=1.0, reduce=simulations.reducer(copy_s=3, reduce_s=20, mb=2000))
    sizes = [topology.Machine(name=name, cores=1, mem_mb=mb) for name, mb in (("n0", 1000), ("n1", 3000))]
    found = simulations.live_workload(job, cluster=Cluster.of(sizes), outages=simulations.outages(("n0", failed_s, 60)))
    # The smaller node runs the map, the larger the reducer, which copies from 10 to 13.
    done = [
        record.kind
        for record in simulations.records(found, profiles.build("fifo", placement="packed"))
        if not record.lost
    ]
    assert (done.count("map"), done.count("reduce")) == (maps, 1)


def test_an_executor_that_is_lost_is_asked_for_again_and_its_tasks_run_again():
    found = simulations.live_workload(
        simulations.spark(executors=2, tasks=(4,)), nodes=2, cores=2, outages=simulations.outages(("n0", 4, 6))
    )
    # Two tasks are lost at 4; the new executor comes at 6.
    assert simulations.job_times_s(found, watch=Invariants()) == (16.0,)


@pytest.mark.parametrize("profile", ["yarn", "yarn-me"])
def test_an_application_that_loses_all_its_pods_starts_again_on_nodes_that_are_reserved_for_its_executors(profile):
    app = simulations.spark(executors=3, tasks=(4,), driver=simulations.container(mb=200), min_executors=1, mb=4000)
    found = simulations.live_workload(app, nodes=2, mb=6000, outages=simulations.outages(("n0", 4, 9), ("n1", 4, 9)))
    # Both nodes are reserved for the third executor when they fail. The first stage waits for it until 30.
    assert simulations.job_times_s(found, profile, watch=Invariants()) == (40.0,)


def test_a_reducer_gives_way_to_maps_of_its_job_that_cannot_run():
    job = simulations.mapreduce(maps=2, reduces=1, slow_start=0.5, reduce=simulations.reducer(mb=1000))
    found = simulations.live_workload(job, nodes=2, cores=1, mb=1000, outages=simulations.outages(("n1", 5, None)))
    # One node is left. The map that ended there lets the reducer in before the lost map only if that is not first.
    outcome = simulations.results(found, watch=Invariants())
    assert outcome.jobs == 1


def test_observers_hear_of_nodes_and_of_what_was_lost():
    script = simulations.Script()
    script.run(simulations.live_workload(simulations.mapreduce(), nodes=2, outages=simulations.outages(("n0", 4, 9))))
    nodes = [(event.name, event.node is None) for event in script.of(model.NodeChanged)]
    assert nodes == [("n0", True), ("n0", False)]
    assert [event.reason for event in script.of(model.Failed)] == ["the node is away"]


def test_random_outages_are_those_of_the_seed():
    job = simulations.mapreduce(maps=60, reduces=4, replicas=2)
    found = simulations.live_workload(
        job, nodes=5, outages=simulations.outages(mean_time_to_failure_s=60, mean_time_to_recovery_s=20)
    )
    ran = [simulations.records(found, seed=seed) for seed in (1, 1, 2)]
    assert ran[0] == ran[1] != ran[2]
    assert sum(record.lost for record in ran[0]) > 0


def test_an_outage_of_a_node_that_is_not_there_is_refused():
    with pytest.raises(WorkloadError, match="'n7', which the cluster has not"):
        simulations.results(
            simulations.live_workload(simulations.mapreduce(), outages=simulations.outages(("n7", 1, 2)))
        )
