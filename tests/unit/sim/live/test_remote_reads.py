"""A read from another host's disks loads these and both networks, and is as slow as the slowest of them."""

import pytest

from boathouse_policies import model
from boathouse_sim import work
from boathouse_sim.conditions import Saturation
from boathouse_sim.live import SparkStage
from boathouse_sim.topology import Machine
from boathouse_sim.workload import Cluster
from tests.builders import simulations
from tests.builders.simulations import Script, suspend_first

READS = simulations.container(work.segment("map", read_mb=500))
"""Takes 5 s with its block at hand and 6 s in the rack, at 83.3 MB/s."""
BOTH = (100 + 500 / 6) / 100 * 1.15
"""What a local and a remote reader make a disk slower by: their rates over its own, and the seek of a second stream."""


def world(*apps, store_cores=1, store_mb_per_s=117.0, own_mb_per_s=117.0, **conditions):
    """A workload on a node with all blocks and one without."""
    nodes = [
        Machine(name="store", cores=store_cores, mem_mb=8000, network_mb_per_s=store_mb_per_s),
        Machine(name="other", cores=1, mem_mb=4000, network_mb_per_s=own_mb_per_s, stores=False),
    ]
    given = {"contention": Saturation(), "reads_load_sources": True} | conditions
    return simulations.live_workload(*apps, cluster=Cluster.of(nodes), **given)


def seconds_by_node(records, kind="map"):
    return {one.node: (one.ended_ms - one.started_ms) / 1000 for one in records if one.kind == kind}


def times_s(*apps, **how):
    """Run times of maps by the name of their node."""
    return seconds_by_node(simulations.records(world(*apps, **how)))


def reading(maps=2, **options):
    return simulations.mapreduce(maps=maps, map=READS, replicas=1, **options)


@pytest.mark.parametrize("pools", [(), (work.Pool(name="unused", mb_per_s=1.0),)], ids=["by host", "with a pool"])
def test_a_remote_reader_is_in_the_way_of_its_sources_local_reader_and_waits_for_the_same_disk(pools):
    local_s = 5 * BOTH
    left = 1 - local_s / (6 * BOTH)  # of the remote reader, which then has the disk for itself
    assert times_s(reading(), pools=pools) == pytest.approx({"store": local_s, "other": local_s + 6 * left}, abs=0.002)
    assert times_s(reading(), pools=pools, reads_load_sources=False) == {"store": 5.0, "other": 6.0}


@pytest.mark.parametrize(
    ("networks", "seconds"),
    [
        ({}, 6.0),
        ({"store_mb_per_s": 50.0}, 10.0),
        ({"own_mb_per_s": 50.0}, 10.0),
        ({"store_mb_per_s": 50.0, "own_mb_per_s": 40.0}, 12.5),
    ],
)
def test_a_remote_reader_is_as_slow_as_the_narrower_of_both_networks(networks, seconds):
    assert times_s(reading(maps=1), store_cores=0.5, **networks) == pytest.approx({"other": seconds}, abs=0.002)


def test_what_the_source_sends_is_in_the_way_of_what_it_copies_itself():
    copies = simulations.container(work.segment("map", copy_mb=1170), mb=6000)  # 10 s; the other node is too small
    found = times_s(simulations.mapreduce("0", map=copies), reading(maps=1, name="1"))
    slow = (117 + 500 / 6) / 117
    assert found == pytest.approx({"store": 6 * slow + 4, "other": 6 * slow}, abs=0.002)


def test_computing_and_copying_are_not_slowed_by_the_sources_disk():
    mixed = simulations.container(work.segment("map", cpu_s=5, copy_mb=117, read_mb=500))
    found = times_s(
        simulations.mapreduce(map=mixed, replicas=1), store_cores=0.5, own_mb_per_s=1e6, store_mb_per_s=25.0
    )
    # 500 MB in 12 s are 41.7 MB/s: 1.67 times what the source's network carries.
    assert found == pytest.approx({"other": 5 + 1 + 6 * (500 / 12 / 25)}, abs=0.002)


def test_a_task_of_a_spark_application_loads_its_blocks_host_too():
    app = simulations.spark(
        executors=2, cores=1, mb=1000, stages=(SparkStage(tasks=2, work=READS.segments[0], replicas=1),)
    )
    found = seconds_by_node(simulations.records(world(app)), kind="task")
    assert found["store"] == pytest.approx(5 * BOTH, abs=0.002)


def test_nothing_changes_where_all_input_is_at_hand():
    def all_records(loads):
        job = simulations.mapreduce(maps=8, map=READS, replicas=2, reduces=2)
        return simulations.records(
            simulations.live_workload(job, nodes=2, contention=Saturation(), reads_load_sources=loads)
        )

    assert all_records(loads=True) == all_records(loads=False)


def test_a_suspended_remote_reader_loads_nothing():
    def suspend_remote(events):
        return suspend_first([one for one in events if getattr(one, "node", "") == "other"], until_s=100.0)

    script = Script({1.0: suspend_remote})
    script.run(world(reading(), tick_ms=1000))
    ends_s = {event.node: event.now_s for event in script.of(model.Finished)}
    assert ends_s["store"] == pytest.approx(1 + 5 - 1 / BOTH, abs=0.002)
    assert ends_s["other"] == pytest.approx(100 + 6 - 1 / BOTH, abs=0.002)
