"""What a gang that has begun is short of goes before all others, one task after another."""

import pytest

from boathouse_policies import model
from tests.builders import core


def shell_with(free: int, profile: str = "fair") -> core.ReportingShell:
    """A node of four cores of which some are free."""
    shell = core.ReportingShell(core.nodes(1), profile=profile)
    if free < 4:
        shell.ledger.observe(core.account("stays", "n0", core.amount(1000 * (4 - free), 1)))
    return shell


@pytest.mark.parametrize("profile", ["fair", "delay", "yarn-me", "ikayak", "boathouse"])
def test_it_goes_before_jobs_of_a_higher_priority_and_needs_no_room_for_all(profile):
    shell = shell_with(2, profile)
    shell.submit("urgent", 4, priority=9, submitted_s=-1.0)
    shell.submit("app", 3, is_short=True, stage=model.Stage.EXECUTOR, class_name="executor", submitted_s=5.0)
    assert core.classes_of(shell.cycle()) == ["app/executor", "app/executor"]


def test_room_for_tasks_without_a_pod_is_reserved():
    shell = shell_with(1)
    job = core.job("app")
    executor = core.task_class(job, name="executor", is_short=True)
    shell.submit_job(job, [executor], core.tasks(executor, 2, expected=True))
    reserved = [one for one in shell.plan().decisions if isinstance(one, model.Reservation)]
    assert [(one.task.id, one.node) for one in reserved] == [("ns/app/executor-0", "n0")]


def test_it_may_use_a_node_that_is_reserved_for_another():
    shell = shell_with(4, "ikayak")
    shell.ledger.observe(core.account("runs", "n0", core.amount(2000, 1), job="other"))
    shell.submit("gang", 3, gang_min=3, stage=model.Stage.EXECUTOR, class_name="executor")
    shell.cycle(0.0)
    assert list(shell.queue.reserved) == ["n0"]
    shell.submit("app", is_short=True, stage=model.Stage.EXECUTOR, class_name="executor", submitted_s=5.0)
    assert core.classes_of(shell.cycle(1.0)) == ["app/executor"]
