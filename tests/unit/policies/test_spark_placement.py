"""Where YARN puts Spark's executors: spread out or not, one application at a time or many."""

import pytest

from boathouse_policies import model
from tests.builders import core

EXECUTOR = {"size": core.amount(4000, 4), "stage": model.Stage.EXECUTOR}
MAP = {"size": core.amount(2000, 2)}


class SparkShell(core.ReportingShell):
    """Four nodes of 8 cores."""

    def __init__(self, profile):
        super().__init__(core.nodes(4, core.amount(8000, 16)), profile=profile)

    def nodes(self, now_s=None):
        """The nodes of what a cycle places."""
        return sorted(core.nodes_of(self.cycle(now_s)))

    def reserved(self):
        return dict(self.queue.reserved)

    def fill(self, *nodes):
        """Two foreign pods of 3 cores on each node: an executor fits once one of them ended."""
        for node in nodes:
            for i in range(2):
                self.ledger.observe(core.account(f"{node}-{i}", on=node, size=core.amount(3000, 1)))


EVERY = ("n0", "n1", "n2", "n3")


def test_spread_out_takes_the_nodes_in_turn():
    shell = SparkShell("spread-out")
    shell.submit("app", 4, **EXECUTOR)
    assert shell.nodes() == list(EVERY)


def test_non_spread_out_fills_one_node_after_the_other():
    shell = SparkShell("non-spread-out")
    shell.submit("app", 4, **EXECUTOR)
    taken = shell.nodes()
    assert [taken.count(node) for node in sorted(set(taken))] == [2, 2]


def test_which_node_is_first_differs_by_application():
    firsts = set()
    for name in ("a", "b", "c", "d", "e", "f"):
        shell = SparkShell("non-spread-out")
        shell.submit(name, 1, **EXECUTOR)
        firsts.update(shell.nodes())
    assert len(firsts) > 1


def test_executors_without_room_have_nodes_reserved_which_nobody_else_may_use():
    shell = SparkShell("spread-out")
    shell.fill(*EVERY)
    shell.submit("app", 4, **EXECUTOR)
    assert shell.nodes() == []
    assert shell.reserved() == dict.fromkeys(EVERY, "app/map")
    shell.submit("maps", 4, **MAP)
    assert shell.nodes() == []  # though two cores are free on each node


def test_an_executor_is_pending_until_its_reserved_node_has_room():
    shell = SparkShell("spread-out")
    shell.fill(*EVERY)
    shell.submit("app", 1, **EXECUTOR)
    shell.nodes()
    (mine,) = shell.reserved()
    other = next(node for node in EVERY if node != mine)
    shell.end(f"ns/{other}-0")
    shell.queue.nodes_changed()
    assert shell.nodes() == []
    shell.end(f"ns/{mine}-0")
    assert shell.nodes() == [mine]
    assert shell.reserved() == {}


@pytest.mark.parametrize(("profile", "nodes"), [("spread-out", 4), ("non-spread-out", 2)])
def test_as_many_nodes_are_reserved_as_the_strategy_needs(profile, nodes):
    shell = SparkShell(profile)
    shell.fill(*EVERY)
    shell.submit("app", 4, **EXECUTOR)
    shell.nodes()
    assert len(shell.reserved()) == nodes


def test_no_node_is_reserved_that_is_full_of_the_applications_own_executors():
    shell = SparkShell("non-spread-out")
    shell.submit("app", 9, **EXECUTOR)
    assert len(shell.nodes()) == 8
    assert shell.nodes(1.0) == []  # the next heartbeat, at which they are counted
    assert shell.reserved() == {}


def test_what_an_executor_does_not_fill_of_an_empty_node_reserves_nothing():
    shell = SparkShell("non-spread-out")
    shell.submit("app", 9, **EXECUTOR | {"size": core.amount(3000, 4)})  # two on each node, and two cores are left
    assert len(shell.nodes()) == 8
    assert shell.nodes(1.0) == []
    assert shell.reserved() == {}


def test_maps_reserve_nothing():
    shell = SparkShell("yarn-cluster")
    shell.submit("maps", 40, **MAP)
    shell.nodes()
    assert shell.reserved() == {}


def test_yarn_client_hosts_one_application_at_a_time():
    shell = SparkShell("yarn-client")
    shell.submit("first", 2, **EXECUTOR)
    shell.submit("second", 2, submitted_s=1.0, **EXECUTOR)
    assert len(shell.nodes()) == 2
    assert shell.reserved() == {}
    for i in range(2):
        shell.end(f"ns/first/map-{i}")
    shell.report(model.Ended(now_s=9.0, job=model.JobId("first"), succeeded=True))
    shell.queue.withdraw(model.JobId("first"))
    assert len(shell.nodes(61.0)) == 2


def test_yarn_cluster_hosts_many():
    shell = SparkShell("yarn-cluster")
    shell.submit("first", 2, **EXECUTOR)
    shell.submit("second", 2, submitted_s=1.0, **EXECUTOR)
    assert len(shell.nodes()) == 4


def test_what_waits_behind_another_application_says_so():
    shell = SparkShell("yarn-client")
    shell.submit("first", 2, **EXECUTOR)
    second = shell.submit("second", 2, submitted_s=1.0, **EXECUTOR)
    plan = shell.plan()
    assert "Spark application first runs" in plan.diagnosis(second.id).message
