"""Nodes that fail: what ran there runs again, and map output that is still needed is made again."""

import dataclasses

import pytest

from boathouse_policies import model, profiles
from boathouse_sim import topology
from boathouse_sim.conditions import Outage, Outages
from boathouse_sim.invariants import Invariants
from boathouse_sim.live import Live
from boathouse_sim.workload import Cluster, WorkloadError
from tests.unit.sim.live import make


def outages(*given, **random):
    return Outages(given=tuple(Outage(node=n, from_s=a, to_s=b) for n, a, b in given), **random)


def test_a_task_on_a_node_that_fails_runs_again_elsewhere():
    found = make.workload(make.mapreduce(), nodes=2, outages=outages(("n0", 4, None)))
    assert make.run(found, watch=Invariants()).job_times_s == (14.0,)
    assert [one.lost for one in make.records(found)] == [True, False]


def test_a_task_waits_for_the_node_to_come_back_where_there_is_no_other():
    found = make.workload(make.mapreduce(), outages=outages(("n0", 4, 9)))
    assert make.run(found, watch=Invariants()).job_times_s == (19.0,)


def test_map_output_that_reducers_lack_is_made_again():
    job = make.mapreduce(maps=2, reduces=1, slow_start=0.5, reduce=make.reducer(copy_s=8, reduce_s=6))
    found = make.workload(job, nodes=2, cores=2, mb=1000, outages=outages(("n0", 12, 13)))
    # Maps on both until 10; n0 goes at 12 with its map output, and with the reducer if it runs there.
    kinds = [one.kind for one in make.records(found) if not one.lost]
    assert (kinds.count("map"), kinds.count("reduce")) == (3, 1)


@pytest.mark.parametrize(("failed_s", "maps"), [(11.5, 2), (15, 1)])
def test_the_output_of_a_map_is_made_again_only_as_long_as_a_reducer_copies(failed_s, maps):
    job = make.mapreduce(reduces=1, slow_start=1.0, reduce=make.reducer(copy_s=3, reduce_s=20, mb=2000))
    sizes = [topology.Machine(name=name, cores=1, mem_mb=mb) for name, mb in (("n0", 1000), ("n1", 3000))]
    found = make.workload(job, cluster=Cluster.of(sizes), outages=outages(("n0", failed_s, 60)))
    # The smaller node runs the map, the larger the reducer, which copies from 10 to 13.
    done = [one.kind for one in make.records(found, profiles.build("fifo", placement="packed")) if not one.lost]
    assert (done.count("map"), done.count("reduce")) == (maps, 1)


def test_an_executor_that_is_lost_is_asked_for_again_and_its_tasks_run_again():
    found = make.workload(make.spark(executors=2, tasks=(4,)), nodes=2, cores=2, outages=outages(("n0", 4, 6)))
    # Two tasks are lost at 4; the new executor comes at 6.
    assert make.run(found, watch=Invariants()).job_times_s == (16.0,)


@pytest.mark.parametrize("profile", ["yarn", "yarn-me"])
def test_an_application_that_loses_all_its_pods_starts_again_on_nodes_that_are_reserved_for_its_executors(profile):
    app = make.spark(executors=3, tasks=(4,), driver=make.container(mb=200), min_executors=1, mb=4000)
    found = make.workload(app, nodes=2, mb=6000, outages=outages(("n0", 4, 9), ("n1", 4, 9)))
    # Both nodes are reserved for the third executor when they fail. The first stage waits for it until 30.
    assert make.run(found, profile, watch=Invariants()).job_times_s == (40.0,)


def test_a_reducer_gives_way_to_maps_of_its_job_that_cannot_run():
    job = make.mapreduce(maps=2, reduces=1, slow_start=0.5, reduce=make.reducer(mb=1000))
    found = make.workload(job, nodes=2, cores=1, mb=1000, outages=outages(("n1", 5, None)))
    # One node is left. The map that ended there lets the reducer in before the lost map only if that is not first.
    outcome = make.run(found, watch=Invariants())
    assert outcome.jobs == 1


def test_observers_hear_of_nodes_and_of_what_was_lost():
    script = make.Script({})
    profile = dataclasses.replace(profiles.build("fifo"), observers=(script,))
    driver = Live(make.workload(make.mapreduce(), nodes=2, outages=outages(("n0", 4, 9))), profile)
    while driver.advance():
        pass
    assert [(event.name, event.node is None) for event in script.seen(model.NodeChanged)] == [
        ("n0", True),
        ("n0", False),
    ]
    assert [event.reason for event in script.seen(model.Failed)] == ["the node is away"]


def test_random_outages_are_those_of_the_seed():
    job = make.mapreduce(maps=200, reduces=4, replicas=2)
    found = make.workload(job, nodes=5, outages=outages(mean_time_to_failure_s=100, mean_time_to_recovery_s=20))
    ran = [make.records(found, seed=seed) for seed in (1, 1, 2)]
    assert ran[0] == ran[1] != ran[2]
    assert sum(one.lost for one in ran[0]) > 0


def test_an_outage_of_a_node_that_is_not_there_is_refused():
    with pytest.raises(WorkloadError, match="'n7', which the cluster has not"):
        make.run(make.workload(make.mapreduce(), outages=outages(("n7", 1, 2))))
