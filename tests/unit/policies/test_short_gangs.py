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


def restoring(*nodes: str, priority: int = 0, name: str = "app", count: int = 2, shell=None, **fields):
    """What a gang of expected executors is short of, with former places on these nodes."""
    shell = shell or core.ReportingShell(core.nodes(3))
    job = core.job(name, priority=priority)
    executor = core.task_class(job, core.amount(2000, 1), name="executor", is_short=True, former_places=nodes, **fields)
    shell.submit_job(job, [executor], core.tasks(executor, count, expected=True))
    return shell


def reserved_on(shell, name: str = "app") -> list[str]:
    decisions = shell.plan().decisions
    return [one.node for one in decisions if isinstance(one, model.Reservation) and one.job.id == name]


def test_its_former_places_come_first():
    assert reserved_on(restoring("n2", "n2")) == ["n2", "n2"]
    assert reserved_on(restoring("n2", "n2", "n1", count=1)) == ["n2"]


def test_where_a_former_place_is_taken_or_gone_another_node_does():
    shell = restoring("gone", "n2", "n1")
    shell.ledger.observe(core.account("other", "n2", core.amount(3000, 1)))
    assert reserved_on(shell)[0] == "n1"
    assert len(reserved_on(shell)) == 2


def test_a_former_place_on_a_node_that_it_may_not_use_any_more_is_none():
    shell = restoring("n2", constraints=model.Constraints(node_selector=(("zone", "a"),)))
    assert reserved_on(shell) == []


def test_another_gang_of_higher_priority_gets_no_former_place_that_is_still_wanted():
    shell = core.ReportingShell([core.node("n0", core.amount(4000, 8)), core.node("n1", core.amount(2000, 8))])
    restoring(name="urgent", priority=9, count=2, shell=shell)
    restoring("n0", "n0", shell=shell)
    assert reserved_on(shell) == ["n0", "n0"]
    assert reserved_on(shell, "urgent") == ["n1"]


def test_former_places_are_within_the_limit_of_the_queue():
    shell = core.ReportingShell(core.nodes(3), [core.queue(cpu=2000)])
    assert reserved_on(restoring("n2", "n2", shell=shell)) == ["n2"]
