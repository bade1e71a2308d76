"""Delay scheduling: a job waits a bounded time for its data, and then takes what is closest."""

import pytest

from boathouse_policies import model, profiles
from boathouse_sim import topology
from boathouse_sim.invariants import Invariants
from boathouse_sim.workload import Cluster
from tests.unit.policies import builders
from tests.unit.sim.live import make

ONE_SLOT = builders.amount(1000, 1)


def world(busy=("n0",)):
    """Three nodes of one slot; n0 holds all input and is busy, n1 is in its rack, n2 in another."""
    racks = {"n0": "r0", "n1": "r0", "n2": "r1"}
    nodes = [builders.node(name, ONE_SLOT, rack=rack) for name, rack in racks.items()]
    found = builders.World(nodes, profile=profiles.build("delay"))
    for name in busy:
        found.ledger.observe(builders.pod(f"busy-{name}", on=name, size=ONE_SLOT))
    return found


def placed_at(found: builders.World, now_s: float):
    found.now_s = now_s
    found.room.tick(now_s)
    return [node for _, node in builders.where(found.cycle())]


def test_a_job_waits_five_seconds_for_its_node_before_it_takes_another_of_the_rack():
    found = world()
    found.submit(count=1, locations=("n0",))
    assert [placed_at(found, at) for at in (0.0, 4.9, 5.0)] == [[], [], ["n1"]]


def test_a_job_waits_five_more_seconds_before_it_takes_another_rack():
    found = world(busy=("n0", "n1"))
    found.submit(count=1, locations=("n0",))
    assert [placed_at(found, at) for at in (0.0, 5.0, 9.9, 10.0)] == [[], [], [], ["n2"]]


def test_a_node_with_the_data_is_taken_at_once():
    found = world(busy=())
    found.submit(count=1, locations=("n0",))
    assert placed_at(found, 0.0) == ["n0"]


def test_what_was_taken_last_is_the_level_from_then_on():
    found = world(busy=("n0", "n2"))
    found.submit(count=2, locations=("n0",))
    assert [placed_at(found, at) for at in (0.0, 5.0)] == [[], ["n1"]]
    found.end("ns/job/map-0")
    assert placed_at(found, 6.0) == ["n1"]


def test_the_delay_restarts_after_each_task_at_its_level():
    found = world(busy=("n0",))
    found.submit(count=2, locations=("n0",))
    assert [placed_at(found, at) for at in (0.0, 5.0, 9.9, 10.0)] == [[], ["n1"], [], ["n2"]]


def test_each_class_of_a_job_has_a_level_of_its_own():
    found = world(busy=("n0",))
    found.ledger.set_node(builders.node("n3", ONE_SLOT, rack="r0"))
    job = builders.job()
    classes = [builders.task_class(job, name=name) for name in ("first", "second")]
    tasks = [builders.task(one, locations=(model.NodeName("n0"),)) for one in classes]
    found.room.submit(job, classes[:1], tasks[:1])
    assert [placed_at(found, at) for at in (0.0, 5.0)] == [[], ["n1"]]
    found.room.submit(job, classes, tasks, placed=found.ledger)
    assert [placed_at(found, at) for at in (6.0, 10.9, 11.0)] == [[], [], ["n3"]]


def test_the_closest_node_is_taken_however_loaded_it_is():
    found = builders.World(builders.nodes(2), profile=profiles.build("delay"))
    found.ledger.observe(builders.pod("large", "n1", builders.amount(3000, 6)))
    found.submit(count=1, locations=("n1",))
    assert placed_at(found, 0.0) == ["n1"]


def test_a_job_that_waits_lets_the_next_one_go():
    found = world(busy=("n0",))
    found.submit("first", count=1, locations=("n0",))
    found.submit("second", count=1, submitted_s=1.0)
    assert placed_at(found, 0.0) == ["n1"]


def test_it_says_what_it_waits_for():
    found = world()
    one = found.submit(count=1, locations=("n0",))
    told = found.cycle().diagnosis(one.id)
    assert told.code is model.Code.PATIENCE
    assert "in the rack of its input" in told.message


def test_the_waits_of_a_job_that_is_over_are_forgotten():
    found = world()
    one = found.submit(count=1, locations=("n0",))
    placed_at(found, 0.0)
    (delay,) = found.profile.observers
    delay.observe(model.Ended(now_s=1.0, job=one.job, succeeded=True))
    assert placed_at(found, 6.0) == []  # its wait begins anew


@pytest.mark.parametrize(("profile", "least"), [("fair", 0.0), ("delay", 0.9)])
def test_delays_bring_maps_to_their_data(profile, least):
    apps = [make.mapreduce(str(i), maps=8, one=make.container(make.cpu(4)), replicas=1) for i in range(4)]
    cluster = Cluster.of(topology.machines(6, cores=2, mem_mb=4000, racks=2))
    found = make.run(make.workload(*apps, cluster=cluster), profile, watch=Invariants())
    assert found.node_local_share >= least
    assert profile == "delay" or found.node_local_share < 0.9


def test_it_does_not_know_which_virtual_machines_share_a_host():
    nodes = [builders.node(name, ONE_SLOT, server="host", rack="r0") for name in ("n0", "n1")]
    found = builders.World(nodes, profile=profiles.build("delay"))
    found.ledger.observe(builders.pod("busy", "n0", ONE_SLOT))
    found.submit(count=1, locations=("n0",))
    assert [placed_at(found, at) for at in (0.0, 4.9)] == [[], []]
    found.now_s = 5.0
    found.room.tick(5.0)
    assert [one.distance for one in builders.placements(found.cycle())] == [model.Distance.RACK]
