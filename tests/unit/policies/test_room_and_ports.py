"""Predicates that depend on what nodes hold."""

import pytest

from boathouse_policies import framework, model
from tests.builders import core


def waits_for(shell: core.Shell) -> str:
    (diagnosis,) = shell.plan().diagnoses()
    return diagnosis.message


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        pytest.param(core.amount(4001, 1), "Insufficient cpu", id="cpu"),
        pytest.param(core.amount(1000, 9), "Insufficient memory", id="memory"),
        pytest.param(core.amount(1000, 1, disk_gib=11), "Insufficient ephemeral-storage", id="disk"),
        pytest.param(core.amount(1000, 1, gpu=2), "Insufficient example.com/gpu", id="extended"),
        pytest.param(core.amount(1000, 1, fpga=1), "Insufficient example.com/fpga", id="extended that no node has"),
    ],
)
def test_what_is_larger_than_the_node_never_fits(size, reason):
    shell = core.Shell([core.node(allocatable=core.amount(4000, 8, disk_gib=10, gpu=1))])
    shell.submit(size=size)
    assert waits_for(shell) == f"no node is large enough, even empty: 0/1 nodes are available: 1 {reason}."


def test_a_request_that_is_met_exactly_fits():
    size = core.amount(4000, 8, disk_gib=10, gpu=1)
    shell = core.Shell([core.node(allocatable=size)])
    shell.submit(size=size)
    assert core.where(shell.plan()) == [("job/map-0", "n0")]


def test_a_full_node_is_full_by_the_number_of_pods_too():
    shell = core.Shell([core.node(max_pods=2)])
    shell.submit(count=3, size=core.amount(1, 0))
    assert len(core.placements(shell.cycle())) == 2
    shell.queue.nodes_changed()
    assert waits_for(shell) == "0/1 nodes are available: 1 Too many pods."


def test_pods_of_other_schedulers_are_counted():
    shell = core.Shell([core.node()])
    shell.ledger.observe(core.account("foreign", size=core.amount(3500, 1)))
    shell.submit()
    assert waits_for(shell) == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_request_of_zero_fits_where_a_resource_is_over_committed():
    shell = core.Shell([core.node()])
    shell.ledger.observe(core.account("foreign", size=core.amount(9000, 1)))
    shell.submit(size=core.amount(0, 1))
    assert core.where(shell.plan()) == [("job/map-0", "n0")]


def port(number: int = 80, **fields) -> model.HostPort:
    return model.HostPort(port=number, **fields)


@pytest.mark.parametrize(
    ("taken", "wanted", "conflict"),
    [
        pytest.param(port(), port(), True, id="same"),
        pytest.param(port(80), port(81), False, id="other port"),
        pytest.param(port(protocol="TCP"), port(protocol="UDP"), False, id="other protocol"),
        pytest.param(port(host_ip="0.0.0.0"), port(host_ip="10.0.0.1"), True, id="all addresses against one"),
        pytest.param(port(host_ip="10.0.0.1"), port(host_ip=""), True, id="one against all"),
        pytest.param(port(host_ip="10.0.0.1"), port(host_ip="10.0.0.2"), False, id="two addresses"),
    ],
)
def test_host_ports_conflict_by_protocol_and_address(taken, wanted, conflict):
    shell = core.Shell([core.node()])
    shell.ledger.observe(core.account("web", host_ports=(taken,)))
    shell.submit(constraints=model.Constraints(host_ports=(wanted,)))
    assert (core.where(shell.plan()) == []) is conflict


def test_one_cycle_gives_a_host_port_of_a_node_once():
    shell = core.Shell(core.nodes(2))
    shell.submit("a", 1, constraints=model.Constraints(host_ports=(port(host_ip="10.0.0.1"),)))
    shell.submit("b", 2, constraints=model.Constraints(host_ports=(port(),)))
    plan = shell.plan()
    assert sorted(placed.node for placed in core.placements(plan)) == ["n0", "n1"]
    (diagnosis,) = plan.diagnoses()
    assert diagnosis.message == "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."


def test_pods_of_a_group_are_kept_apart_also_within_a_cycle_and_beside_pods_of_another():
    shell = core.Shell(core.nodes(2))
    for group in ("a", "b"):
        apart = model.HostPort(port=0, protocol=f"apart/ns/{group}")
        shell.submit(group, 3, constraints=model.Constraints(host_ports=(apart,)))
    plan = shell.plan()
    groups = sorted((task.partition("/")[0], node) for task, node in core.where(plan))
    assert groups == [("a", "n0"), ("a", "n1"), ("b", "n0"), ("b", "n1")]
    message = "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."
    assert {diagnosis.message for diagnosis in plan.diagnoses()} == {message}


def test_a_port_is_free_again_when_its_pod_is_gone():
    shell = core.Shell([core.node()])
    shell.ledger.observe(core.account("web", host_ports=(port(),)))
    shell.end("ns/web")
    shell.submit(constraints=model.Constraints(host_ports=(port(),)))
    assert len(core.placements(shell.plan())) == 1


def test_a_node_counts_for_each_resource_that_it_lacks():
    shell = core.Shell([*core.nodes(3), core.node("tainted", taints=(model.Taint(key="x", value="y"),))])
    for i in range(3):
        shell.ledger.observe(core.account(f"p{i}", on=f"n{i}", size=core.amount(3500, 7.5 if i else 1)))
    shell.submit(size=core.amount(1000, 1))
    expected = "3 Insufficient cpu, 2 Insufficient memory, 1 node(s) had untolerated taint {x: y}"
    assert waits_for(shell) == f"0/4 nodes are available: {expected}."


def test_the_diagnosis_names_what_is_scarce():
    shell = core.Shell(core.nodes(1))
    shell.submit("greedy", 3, size=core.amount(1000, 2))
    shell.cycle()
    shell.ledger.observe(core.account("foreign", size=core.amount(200, 1.5)))
    shell.submit("late", 2, size=core.amount(100, 1), submitted_s=1.0)
    (diagnosis,) = shell.plan().diagnoses()
    assert (diagnosis.scarce, diagnosis.count) == ("memory", 2)
    assert (diagnosis.asked, diagnosis.largest) == (core.GIB, 8 * core.GIB)


def test_without_nodes_more_nodes_would_help():
    shell = core.Shell()
    shell.submit()
    (diagnosis,) = shell.plan().diagnoses()
    assert (diagnosis.code, diagnosis.message) == (model.Code.UNSCHEDULABLE, "0/0 nodes are available.")


def test_a_static_mask_is_mended_for_the_node_that_changed():
    shell = core.Shell(core.nodes(2))
    constraints = model.Constraints(node_selector=(("disk", "ssd"),))
    shell.submit(constraints=constraints)
    assert core.where(shell.plan()) == []
    shell.ledger.set_node(core.node("n1", labels={"disk": "ssd"}))
    assert core.where(shell.plan()) == [("job/map-0", "n1")]
    assert isinstance(shell.view(), framework.ClusterView)


def test_a_feature_that_some_node_declares_is_needed_and_one_that_none_declares_is_not():
    nodes = [core.node("n0"), core.node("n1", features=frozenset({"F"}))]
    shell = core.Shell(nodes)
    shell.submit("needs", 1, constraints=model.Constraints(features=("F", "G")))
    shell.submit("more", 1, constraints=model.Constraints(features=("F",), node_name=model.NodeName("n0")))
    plan = shell.plan()
    assert core.where(plan) == [("needs/map-0", "n1")]
    (diagnosis,) = plan.diagnoses()
    assert "1 node(s) didn't match Pod's required features" in diagnosis.message
