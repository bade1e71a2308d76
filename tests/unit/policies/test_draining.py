"""Under profiles that reserve no nodes for gangs, room is kept for one that waits for long as it comes free."""

import pytest

from boathouse_policies import model
from boathouse_policies.framework import gathering
from tests.builders import core

NODE = core.amount(4000, 8)
DUE_S = gathering.PATIENCE_S
PROFILES = ["fair", "delay", "yarn-me"]


class Shell(core.ReportingShell):
    """Nodes of 4 cores, each full of small tasks but for one core."""

    def __init__(self, nodes: int = 2, profile: str = "fair", running: int = 3) -> None:
        super().__init__(core.nodes(nodes, NODE), profile=profile)
        self.submit("runs", nodes * running, submitted_s=-1.0, namespace="third")
        self.cycle()

    def gang(self, name: str = "gang", count: int = 2, cores: int = 2, **fields) -> None:
        size = core.amount(1000 * cores, 1)
        self.submit(name, count, size, gang_min=count, class_name="executor", **fields)

    def small(self, count: int = 20, **fields) -> None:
        self.submit("small", count, namespace="small", submitted_s=1.0, **fields)

    def placed_of(self, name: str) -> int:
        return sum(task.startswith(f"ns/{name}/") for task in self.ledger._entries)

    def kept_milli(self) -> int:
        return sum(one.amounts[model.CPU] for one in self.profile.draining.kept)

    def why(self, job: str = "gang") -> str:
        """Why a job waits, by a cycle that looks at everything."""
        self.queue.nodes_changed()
        return next(one.message for one in self.plan().diagnoses() if one.job == job)


def drained(profile: str = "fair", nodes: int = 2) -> Shell:
    """Room is kept for a gang, and small tasks are about to come."""
    shell = Shell(nodes, profile)
    shell.gang()
    shell.cycle(0.0)
    shell.cycle(DUE_S)
    return shell


@pytest.mark.parametrize("profile", PROFILES)
def test_what_is_free_adds_up_for_a_gang_until_it_fits(profile):
    shell = drained(profile)
    assert (shell.profile.draining.job, shell.kept_milli()) == ("gang", 2000)
    shell.small()
    for number in range(2):
        assert shell.placed_of("small") == 0
        shell.end(f"ns/runs/map-{3 * number}")
        shell.end(f"ns/runs/map-{3 * number + 1}")
        shell.cycle(DUE_S + 1.0 + number)
    assert shell.placed_of("gang") == 2
    assert shell.profile.draining.kept == ()


def test_before_a_gang_has_waited_for_long_small_tasks_take_what_is_free():
    shell = Shell()
    shell.gang()
    shell.cycle(0.0)
    shell.small()
    shell.cycle(DUE_S - 1.0)
    assert shell.placed_of("small") == 2


def test_no_more_is_kept_than_the_gang_needs():
    shell = drained(nodes=4)
    shell.small()
    shell.cycle(DUE_S + 1.0)
    assert (shell.kept_milli(), shell.placed_of("small")) == (2000, 2)


def test_one_gang_at_a_time_has_room_kept_the_highest_priority_first():
    shell = Shell()
    shell.gang("first")
    shell.gang("urgent", priority=5, submitted_s=1.0)
    shell.cycle(0.0)
    shell.cycle(DUE_S)
    assert shell.profile.draining.job == "urgent"
    assert "room is kept for another gang that is ahead" in shell.why("first")


def test_a_gang_that_the_limit_of_its_queue_keeps_waiting_has_its_part_of_the_limit_kept():
    shell = core.ReportingShell(core.nodes(2, NODE), [core.queue(cpu=4000)])
    shell.submit("runs", 3, submitted_s=-1.0)
    shell.cycle()
    shell.submit("gang", 3, gang_min=3, class_name="executor")
    shell.cycle(0.0)
    shell.cycle(DUE_S)
    shell.submit("small", 20, submitted_s=1.0)
    for number in range(2):
        shell.end(f"ns/runs/map-{number}")
        shell.cycle(DUE_S + 1.0 + number)
    assert {placed.partition("-")[0] for placed in shell.ledger._entries} == {"ns/runs/map", "ns/gang/executor"}


def test_room_that_is_kept_goes_with_the_job():
    shell = drained()
    shell.queue.withdraw(model.JobId("gang"))
    shell.small()
    shell.cycle(DUE_S + 1.0)
    assert (shell.profile.draining.job, shell.placed_of("small")) == (None, 2)


# What users are told


def test_a_gang_for_which_room_is_kept_says_so_and_for_how_long():
    assert "room is kept for it as it comes free, for 600 s at most while others wait" in drained().why()


def test_a_gang_that_never_fits_beside_pods_that_stay_says_so_and_keeps_nothing():
    shell = Shell(running=0)
    shell.ledger.observe(core.account("stays", "n0", core.amount(3000, 1), is_long_running=True))
    shell.gang(count=4)
    shell.cycle(0.0)
    shell.cycle(DUE_S)
    assert shell.profile.draining.job is None
    assert gathering.NEVER_IN_TIME.message in shell.why()


def test_above_its_part_a_gang_says_so_and_after_a_minute_that_it_rests():
    shell = Shell(running=3)
    shell.gang(count=4, cores=2, namespace="big")
    shell.cycle(0.0)
    shell.cycle(DUE_S)
    shell.small()
    for number in (0, 1, 3):
        shell.end(f"ns/runs/map-{number}")
    shell.cycle(DUE_S + 1.0)
    shell.cycle(DUE_S + 2.0)
    assert "above the fair part of its namespace for 60 s at most" in shell.why()
    shell.cycle(DUE_S + 2.0 + gathering.ABOVE_PART_S)
    assert "none are kept for another 70 s while others wait" in shell.why()
    assert shell.placed_of("small") == 5
