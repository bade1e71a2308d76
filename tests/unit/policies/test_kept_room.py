"""What takes room without a turn in a cycle takes none that is kept for a gang."""

import numpy as np
import pytest

from boathouse_policies import model
from boathouse_policies.framework import gathering
from boathouse_policies.framework.queue import KEPT_FOR_GANG
from tests.builders import core

CORE = 1000


def keeping(profile: str) -> core.ReportingShell:
    """A node with a free core, which is kept for a gang of four tasks of a core, and one that stays full."""
    shell = core.ReportingShell(core.nodes(2, core.amount(4 * CORE, 8)), profile=profile)
    shell.ledger.observe(core.account("runs", "n0", core.amount(3 * CORE, 1), job="other"))
    shell.ledger.observe(core.account("full", "n1", core.amount(4 * CORE, 1), is_long_running=True))
    shell.submit("gang", 4, core.amount(CORE, 1), gang_min=4, class_name="executor", stage=model.Stage.EXECUTOR)
    shell.cycle(0.0)
    shell.cycle(gathering.PATIENCE_S)
    return shell


def refusal(shell: core.Shell, cpu_milli: int, node: str = "n0") -> str:
    more = [cpu_milli if row == model.CPU else 0 for row in range(shell.axis.width)]
    return shell.queue.kept_room.refusal(node, shell.ledger.free(node), more)


PROFILES = pytest.mark.parametrize("profile", ["fair", "ikayak"])


@PROFILES
def test_what_is_kept_is_refused_whether_it_is_a_part_of_a_node_or_the_whole(profile):
    shell = keeping(profile)
    assert shell.queue.kept_room.nodes() == {"n0"}
    assert refusal(shell, 500) == KEPT_FOR_GANG


@PROFILES
def test_a_task_may_always_shrink(profile):
    assert refusal(keeping(profile), -500) == ""


@PROFILES
def test_columns_of_free_room_leave_out_what_is_kept(profile):
    shell = keeping(profile)
    free = shell.view().free()[model.CPU]
    beside = shell.queue.kept_room.beside(shell.view())[model.CPU]
    assert (free.tolist(), beside.tolist()) == ([CORE, 0], [0, 0])


@PROFILES
def test_room_is_kept_no_longer_than_its_gang_is_in_the_queue(profile):
    shell = keeping(profile)
    shell.queue.withdraw(model.JobId("gang"))
    assert (shell.queue.kept_room.nodes(), refusal(shell, 500)) == (set(), "")


def test_beside_the_part_of_a_node_that_is_kept_there_is_room():
    shell = keeping("fair")
    shell.end("ns/runs")
    assert [refusal(shell, milli) for milli in (3 * CORE, 3 * CORE + 1)] == ["", KEPT_FOR_GANG]


def test_a_resource_that_the_cluster_got_to_know_later_is_not_kept():
    shell = keeping("fair")
    before = shell.queue.kept_room.beside(shell.view())
    shell.axis.row("example.com/gpu")
    after = shell.queue.kept_room.beside(shell.view())
    assert np.array_equal(after[: len(before)], before)


def test_the_next_cycle_says_what_is_kept_from_then_on():
    shell = keeping("fair")
    shell.end("ns/runs")
    shell.cycle(gathering.PATIENCE_S + 1.0)
    assert shell.view().by_class["gang/executor"] == 4
    assert shell.queue.kept_room.nodes() == set()
