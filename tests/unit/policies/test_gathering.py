"""How long nodes are kept for a gang that waits, and for which."""

import pytest

from boathouse_policies import model, profiles
from boathouse_policies.framework import gathering
from tests.builders import core

WHOLE = core.amount(8000, 16)
SMALL = core.amount(1000, 1)
PROFILES = ["ikayak", "boathouse"]


class Shell(core.ReportingShell):
    """Nodes of 8 cores, and pods that stay."""

    def __init__(self, nodes: int, profile: str) -> None:
        super().__init__(core.nodes(nodes, WHOLE), profile=profiles.build(profile))

    def stays(self, on: str, cpu_milli: int = 1500) -> None:
        """A pod of nobody's job runs on a node."""
        self.ledger.observe(core.account(f"stays-{on}", on, core.amount(cpu_milli, 1), is_long_running=True))

    def gang(self, name: str = "gang", count: int = 10, **fields) -> None:
        self.submit(name, count, WHOLE, stage=model.Stage.EXECUTOR, gang_min=count, class_name="executor", **fields)

    def kept(self) -> dict[str, int]:
        """How many nodes are kept for each class."""
        owners = list(self.queue.reserved.values())
        return {owner: owners.count(owner) for owner in owners}

    def placed_of(self, name: str) -> int:
        return sum(task.startswith(f"ns/{name}/") for task in self.ledger._entries)


@pytest.mark.parametrize("profile", PROFILES)
def test_no_node_is_kept_for_a_gang_that_cannot_fit_beside_a_pod_that_stays(profile):
    shell = Shell(10, profile)
    shell.stays("n3")
    shell.gang(namespace="greedy")
    shell.cycle()
    shell.submit("others", 36, core.amount(2000, 2), namespace="honest", submitted_s=1.0)
    for now_s in range(1, 5):
        shell.cycle(float(now_s))
    assert shell.kept() == {}
    assert shell.placed_of("others") == 36
    (why,) = [one.verdict.message for one in shell.plan().diagnoses() if one.task_class.endswith("executor")] or [""]
    assert why == "" or "nobody expects to end" in why


@pytest.mark.parametrize("profile", PROFILES)
def test_in_a_pool_of_one_node_a_small_job_passes_an_application_that_can_never_start(profile):
    shell = Shell(1, profile)
    shell.stays("n0")
    shell.gang(count=1)
    shell.cycle()
    shell.submit("small", size=SMALL, submitted_s=1.0)
    assert core.nodes_of(shell.cycle(1.0)) == ["n0"]


def waiting(profile: str, namespace: str = "other") -> Shell:
    """Four nodes: a task holds each, a gang wants all of them, and another job waits for one."""
    shell = Shell(4, profile)
    shell.submit("runs", 4, WHOLE, namespace="third", stage=model.Stage.MAP)
    shell.cycle()
    shell.gang(count=4, namespace="big")
    shell.cycle(1.0)
    shell.submit("small", 40, SMALL, namespace=namespace, submitted_s=2.0, stage=model.Stage.MAP)
    return shell


@pytest.mark.parametrize("profile", PROFILES)
def test_above_its_part_a_gang_keeps_nodes_for_a_minute_and_then_none_for_as_long(profile):
    shell = waiting(profile)
    assert shell.kept() == {"gang/executor": 4}
    for index in range(3):
        shell.end(f"ns/runs/map-{index}")
    shell.cycle(10.0)
    shell.cycle(10.0 + gathering.ABOVE_PART_S - 1.0)
    assert shell.placed_of("small") == 0
    for more_s in (0.0, 0.1, 1.0):
        shell.cycle(10.0 + gathering.ABOVE_PART_S + more_s)
    assert shell.kept() == {}
    assert shell.placed_of("small") == 24
    shell.cycle(10.0 + gathering.ABOVE_PART_S + 50.0)
    assert shell.kept() == {}
    shell.cycle(10.0 + 2.5 * gathering.ABOVE_PART_S)
    assert list(shell.kept()) == ["gang/executor"]


@pytest.mark.parametrize("profile", PROFILES)
def test_within_its_part_a_gang_keeps_nodes_for_ten_minutes(profile):
    shell = waiting(profile)
    shell.end("ns/runs/map-0")
    shell.cycle(10.0)
    shell.cycle(gathering.GATHER_S - 10.0)
    assert shell.kept() == {"gang/executor": 4}
    assert shell.placed_of("small") == 0
    for more_s in (20.0, 21.0, 22.0):
        shell.cycle(gathering.GATHER_S + more_s)
    assert shell.placed_of("small") == 8


@pytest.mark.parametrize("profile", PROFILES)
def test_a_gang_that_nobody_waits_behind_keeps_its_nodes(profile):
    shell = Shell(2, profile)
    shell.submit("runs", 2, WHOLE, stage=model.Stage.MAP)
    shell.cycle()
    shell.gang(count=2)
    shell.cycle(1.0)
    shell.end("ns/runs/map-0")
    shell.cycle(2 * gathering.GATHER_S)
    shell.cycle(2 * gathering.GATHER_S + 10.0)
    assert shell.kept() == {"gang/executor": 2}
    shell.end("ns/runs/map-1")
    assert len(core.nodes_of(shell.cycle(2 * gathering.GATHER_S + 20.0))) == 2


@pytest.mark.parametrize(("executors", "fits"), [(6, True), (7, False)])
def test_a_driver_goes_where_it_takes_least_from_the_executors(executors, fits):
    shell = Shell(2, "ikayak")
    shell.stays("n0", 1000)  # 7 cores beside it: with the driver of one, three executors of two cores
    view = shell.view()
    everywhere = view.layout.allocatable[0] > 0
    driver = gathering.Member(view.axis.vector(core.amount(1000, 1)), everywhere, 1)
    executor = gathering.Member(view.axis.vector(core.amount(2000, 1)), everywhere, executors + 1)
    assert gathering.fits_whole([executor, driver], gathering.beside_long_running(view)) is fits
