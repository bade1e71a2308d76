"""Delay scheduling: a job waits a bounded time for its data, and then takes what is closest."""

import pytest

from boathouse_lab.invariants import Invariants
from boathouse_policies import model
from boathouse_sim import topology
from boathouse_sim.workload import Cluster
from tests.builders import core, simulations

ONE_SLOT = core.amount(1000, 1)


class RacksShell(core.ReportingShell):
    """Three nodes of one slot; n0 holds all input and is busy, n1 is in its rack, n2 in another."""

    def __init__(self, busy=("n0",)) -> None:
        racks = {"n0": "r0", "n1": "r0", "n2": "r1"}
        super().__init__([core.node(name, ONE_SLOT, rack=rack) for name, rack in racks.items()], profile="delay")
        for name in busy:
            self.ledger.observe(core.account(f"busy-{name}", on=name, size=ONE_SLOT))

    def nodes_at(self, *times_s: float) -> list[list[str]]:
        """The nodes that cycles at these times select."""
        return [core.nodes_of(self.cycle(now_s)) for now_s in times_s]


def test_a_job_waits_five_seconds_for_its_node_before_it_takes_another_of_the_rack():
    shell = RacksShell()
    shell.submit(locations=["n0"])
    assert shell.nodes_at(0.0, 4.9, 5.0) == [[], [], ["n1"]]


def test_a_job_waits_five_more_seconds_before_it_takes_another_rack():
    shell = RacksShell(busy=("n0", "n1"))
    shell.submit(locations=["n0"])
    assert shell.nodes_at(0.0, 5.0, 9.9, 10.0) == [[], [], [], ["n2"]]


def test_a_node_with_the_data_is_taken_at_once():
    shell = RacksShell(busy=())
    shell.submit(locations=["n0"])
    assert shell.nodes_at(0.0) == [["n0"]]


def test_what_was_taken_last_is_the_level_from_then_on():
    shell = RacksShell(busy=("n0", "n2"))
    shell.submit(count=2, locations=("n0",))
    assert shell.nodes_at(0.0, 5.0) == [[], ["n1"]]
    shell.end("ns/job/map-0")
    assert shell.nodes_at(6.0) == [["n1"]]


def test_the_delay_restarts_after_each_task_at_its_level():
    shell = RacksShell(busy=("n0",))
    shell.submit(count=2, locations=("n0",))
    assert shell.nodes_at(0.0, 5.0, 9.9, 10.0) == [[], ["n1"], [], ["n2"]]


def test_each_class_of_a_job_has_a_level_of_its_own():
    shell = RacksShell(busy=("n0",))
    shell.ledger.set_node(core.node("n3", ONE_SLOT, rack="r0"))
    job = core.job()
    classes = [core.task_class(job, name=name) for name in ("first", "second")]
    tasks = [core.task(of, 0, ["n0"]) for of in classes]
    shell.submit_job(job, classes[:1], tasks[:1])
    assert shell.nodes_at(0.0, 5.0) == [[], ["n1"]]
    shell.submit_job(job, classes, tasks)
    assert shell.nodes_at(6.0, 10.9, 11.0) == [[], [], ["n3"]]


def test_the_closest_node_is_taken_however_loaded_it_is():
    shell = core.Shell(core.nodes(2), profile="delay")
    shell.ledger.observe(core.account("large", "n1", core.amount(3000, 6)))
    shell.submit(locations=["n1"])
    assert core.nodes_of(shell.cycle()) == ["n1"]


def test_a_job_that_waits_lets_the_next_one_go():
    shell = RacksShell(busy=("n0",))
    shell.submit("first", count=1, locations=("n0",))
    shell.submit("second", count=1, submitted_s=1.0)
    assert shell.nodes_at(0.0) == [["n1"]]


def test_it_says_what_it_waits_for():
    shell = RacksShell()
    task_class = shell.submit(locations=["n0"])
    diagnosis = shell.cycle().diagnosis(task_class.id)
    assert diagnosis.code is model.Code.PATIENCE
    assert "in the rack of its input" in diagnosis.message


def test_the_waits_of_a_job_that_is_over_are_forgotten():
    shell = RacksShell()
    task_class = shell.submit(locations=["n0"])
    shell.nodes_at(0.0)
    shell.report(model.Ended(now_s=1.0, job=task_class.job, succeeded=True))
    assert shell.nodes_at(6.0) == [[]]  # its wait begins anew


@pytest.mark.parametrize(("profile", "least"), [("fair", 0.0), ("delay", 0.9)])
def test_delays_bring_maps_to_their_data(profile, least):
    apps = [simulations.mapreduce(str(i), 8, simulations.mapper(4), replicas=1) for i in range(4)]
    cluster = Cluster.of(topology.machines(6, cores=2, mem_mb=4000, racks=2))
    found = simulations.results(simulations.live_workload(*apps, cluster=cluster), profile, watch=Invariants())
    assert found.node_local_share >= least
    assert profile == "delay" or found.node_local_share < 0.9


def test_it_does_not_know_which_virtual_machines_share_a_host():
    nodes = [core.node(name, ONE_SLOT, server="host", rack="r0") for name in ("n0", "n1")]
    shell = core.Shell(nodes, profile="delay")
    shell.ledger.observe(core.account("busy", "n0", ONE_SLOT))
    shell.submit(locations=["n0"])
    assert [core.nodes_of(shell.cycle(now_s)) for now_s in (0.0, 4.9)] == [[], []]
    assert [placed.distance for placed in core.placements(shell.cycle(5.0))] == [model.Distance.RACK]
