"""YARN's reservations within a cycle."""

import pytest

from boathouse_policies import model
from tests.builders import core

FREE_GIB = {"n0": 1, "n1": 2, "n2": 3, "n3": 0}
RESERVED = {"n0": "small/map", "n1": "last/map", "n3": "large/map"}


def test_who_lost_its_last_reserved_node_has_no_turn_any_more_in_a_cycle_in_which_all_nodes_are_reserved():
    shell = core.Shell(core.nodes(4, core.amount(64_000, 4)), profile="yarn")
    for node, gib in FREE_GIB.items():
        shell.ledger.observe(core.account(f"filler-{node}", node, core.amount(0, 4 - gib)))
    for name, gib, submitted_s in (("huge", 4, 0), ("small", 1, 1), ("large", 3.5, 2), ("last", 1, 3)):
        shell.submit(name, 2, core.amount(0, gib), submitted_s=submitted_s)
    for node, owner in RESERVED.items():
        shell.queue.reserved[model.NodeName(node)] = model.ClassId(owner)
    # `huge` reserves n2, and `large` n0 once `small` has used it: on n1 `last` leaves room, but `small` has no turn.
    placed = [("small/map-0", "n0"), ("last/map-0", "n1"), ("last/map-1", "n1")]
    assert core.where(shell.cycle()) == placed


def test_whose_namespace_may_reserve_no_more_nodes_takes_no_turn_from_others():
    shell = core.Shell(core.nodes(2, core.amount(64_000, 4)), profile="yarn")
    for node, gib in {"n0": 3, "n1": 1}.items():
        shell.ledger.observe(core.account(f"filler-{node}", node, core.amount(0, gib)))
    for name, gib, namespace in (("large", 2, "a"), ("owner", 1, "b"), ("small", 1, "b")):
        shell.submit(name, 2, core.amount(0, gib), namespace=namespace)
    shell.queue.reserved[model.NodeName("n0")] = model.ClassId("large/map")
    shell.queue.reserved[model.NodeName("n1")] = model.ClassId("owner/map")
    placed = [("owner/map-0", "n1"), ("small/map-0", "n1"), ("owner/map-1", "n1")]
    assert core.where(shell.cycle()) == placed


@pytest.mark.parametrize(
    ("key", "reserved"), [("no-such-label", ["n0", "n1"]), ("host", ["n1"])], ids=["no-node", "one-node"]
)
def test_pods_that_forbid_others_next_to_them_cost_a_class_no_other_reservation(key, reserved):
    everywhere = model.PodSet(selector=model.Selector(), namespace_selector=model.Selector())
    forbidding = (model.PodTerm(topology_key=key, pods=everywhere),)
    nodes = [core.node(f"n{i}", core.amount(64_000, 4), labels={"host": f"n{i}"}) for i in range(2)]
    shell = core.Shell(nodes, profile="yarn")
    shell.ledger.observe(core.account("hermit", "n0", core.amount(0, 3), namespace="b", anti_affinity=forbidding))
    shell.ledger.observe(core.account("filler", "n1", core.amount(0, 3)))
    shell.submit("large", 1, core.amount(0, 2))
    shell.cycle()
    assert list(shell.queue.reserved) == reserved


def test_a_node_is_no_longer_reserved_for_a_class_that_a_pod_forbids_there():
    everywhere = model.PodSet(selector=model.Selector(), namespace_selector=model.Selector())
    nodes = [core.node(f"n{i}", core.amount(64_000, 4), labels={"host": f"n{i}"}) for i in range(2)]
    shell = core.Shell(nodes, profile="yarn")
    for i in range(2):
        shell.ledger.observe(core.account(f"filler-{i}", f"n{i}", core.amount(0, 3)))
    shell.submit("large", 1, core.amount(0, 2))
    shell.cycle()
    forbidding = (model.PodTerm(topology_key="host", pods=everywhere),)
    shell.ledger.observe(core.account("hermit", "n0", core.amount(0, 0), namespace="b", anti_affinity=forbidding))
    shell.queue.nodes_changed()
    shell.cycle()
    assert list(shell.queue.reserved) == ["n1"]


def test_a_cycle_without_pending_tasks_decides_nothing_while_all_nodes_are_reserved():
    shell = core.Shell(core.nodes(1), profile="yarn")
    shell.queue.reserved[model.NodeName("n0")] = model.ClassId("gone/map")
    assert shell.cycle().decisions == []


def where_nodes_are_reserved_for(owner, profile, *classes, ahead=None):
    """Which classes of a job are placed, one task each, on two empty nodes that are reserved for one of the classes."""
    shell = core.Shell(core.nodes(2, core.amount(4000, 4)), profile=profile)
    job = core.job(submitted_s=1.0)
    members = [core.task_class(job, name=name, **fields) for name, fields in classes]
    shell.submit_job(job, members, [core.task(member) for member in members])
    if ahead is not None:
        shell.submit("ahead", 1, ahead)
    for node in ("n0", "n1"):
        shell.queue.reserved[model.NodeName(node)] = model.ClassId(f"job/{owner}")
    return [task for task, _ in core.where(shell.cycle())]


LARGE, SMALL = {"size": core.amount(1000, 5)}, {"size": core.amount(1000, 1)}
GANG = {"size": core.amount(1000, 1), "gang_min": 1}


@pytest.mark.parametrize("profile", ["yarn", "yarn-me", "capacity"])
@pytest.mark.parametrize("owner", ["driver", "executor"])
def test_nodes_that_are_reserved_for_a_member_of_a_gang_are_open_to_the_gang(profile, owner):
    placed = where_nodes_are_reserved_for(owner, profile, ("driver", GANG), ("executor", GANG))
    assert placed == ["job/driver-0", "job/executor-0"]


@pytest.mark.parametrize("profile", ["yarn", "yarn-me", "capacity"])
def test_nodes_that_are_reserved_for_a_class_are_open_to_those_before_it_in_its_job(profile):
    assert where_nodes_are_reserved_for("reduce", profile, ("map", SMALL), ("reduce", LARGE)) == ["job/map-0"]


@pytest.mark.parametrize("profile", ["yarn", "yarn-me", "capacity"])
def test_nodes_that_are_reserved_for_a_class_are_closed_to_those_after_it_in_its_job(profile):
    assert where_nodes_are_reserved_for("map", profile, ("map", LARGE), ("reduce", SMALL)) == []


@pytest.mark.parametrize("profile", ["yarn", "yarn-me", "capacity"])
def test_nodes_that_are_reserved_for_a_class_are_closed_to_other_jobs(profile):
    classes = ("map", SMALL), ("reduce", LARGE)
    placed = where_nodes_are_reserved_for("reduce", profile, *classes, ahead=core.amount(1000, 1))
    assert placed == ["job/map-0"]
