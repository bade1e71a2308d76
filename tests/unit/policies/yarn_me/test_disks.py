"""Disk budgets from what tasks and instruments measured."""

import json
import math

import pytest

from boathouse_policies import model, yarn_me
from boathouse_policies.yarn_me import disks
from tests.builders import core
from tests.builders.core_elastic import elastic_estimates

MB = 1e6
IDEAL = core.amount(1000, 4)


class SpillingShell(core.ReportingShell):
    """One elastic class, whose tasks spill 100 MB, which are written and read in 10 s."""

    def __init__(self, allocatable=IDEAL, **config) -> None:
        profile = yarn_me.build(config=yarn_me.Config(**{"disk_share": 1.0} | config))
        super().__init__(core.nodes(1, allocatable), profile=profile)
        self.disks = self.observer(yarn_me.Disks)
        estimates = elastic_estimates(IDEAL, 5.0, 2.0, output_bytes=100 * MB)
        self.task_class = core.task_class(core.job(), IDEAL, estimates=estimates)
        self.report(core.submitted(core.job(), self.task_class))

    def task(self, name) -> model.Task:
        return model.Task(id=model.TaskId(name), task_class=self.task_class.id)

    def of_namespace(self, namespace) -> "SpillingShell":
        """The class belongs to another namespace's job from now on."""
        self.report(core.submitted(core.job(namespace=namespace), self.task_class))
        return self

    def place(self, name, gib=1) -> None:
        self.report_task(model.Placed, self.task(name), resources=core.amount(1000, gib))

    def finish_task(self, name, on="n0", rate=0.0) -> None:
        self.report_task(model.Finished, self.task(name), on, counters={"spill_bytes_per_s": rate})

    def budget(self, node, namespace="") -> float:
        return self.disks.budget(namespace, node)

    def measure(self, **usage) -> None:
        self.report(model.Measured(now_s=0.0, name=model.NodeName("n0"), usage=usage))


def test_there_is_no_budget_until_a_rate_is_known():
    shell = SpillingShell()
    shell.finish_task("quick")
    assert (shell.disks.has_budget, shell.budget("n0")) == (False, math.inf)


def test_a_disk_carried_the_rate_of_a_task_times_the_tasks_that_spilled_there():
    shell = SpillingShell()
    shell.place("a")
    shell.place("b")
    shell.place("whole", gib=4)
    shell.finish_task("a", rate=30 * MB)
    assert shell.budget("n0") == 60 * MB


def test_newer_rates_count_for_three_tenths():
    shell = SpillingShell()
    shell.finish_task("a", rate=100 * MB)
    shell.finish_task("b", rate=50 * MB)
    assert shell.budget("n0") == pytest.approx(85 * MB)


def test_a_node_without_figures_has_the_median_of_the_others():
    shell = SpillingShell(disk_bytes_per_s=1.0)
    for on, rate in (("n0", 10 * MB), ("n1", 20 * MB), ("n2", 90 * MB)):
        shell.finish_task(on, on, rate)
    assert shell.budget("n9") == 20 * MB


def test_what_others_do_to_a_disk_is_taken_off():
    shell = SpillingShell(disk_bytes_per_s=100 * MB)
    shell.place("a")
    shell.measure(disk_bytes_per_s=50 * MB)
    assert shell.budget("n0") == pytest.approx(70 * MB)  # 20 MB/s are of the task itself
    shell.measure(cpu_cores=1.0)
    assert shell.budget("n0") == 100 * MB


def test_nodes_that_went_do_not_count_but_the_last_one():
    shell = SpillingShell()
    shell.finish_task("a", "n0", 10 * MB)
    shell.finish_task("b", "n1", 30 * MB)
    for name in ("n0", "n1"):
        shell.report(model.NodeChanged(now_s=0.0, name=model.NodeName(name), node=None))
    assert shell.budget("n2") == 30 * MB


@pytest.mark.parametrize("forged", [1.0, 1e300])
def test_a_forged_rate_counts_for_its_own_namespace_alone(forged):
    shell = SpillingShell()
    shell.finish_task("ours", rate=30 * MB)
    shell.of_namespace("forger").finish_task("theirs", rate=forged)
    assert shell.budget("n0") == shell.budget("n9") == 30 * MB
    assert shell.budget("n0", "forger") == min(forged, 1e12)


def test_the_namespace_that_reported_no_spill_for_longest_begins_anew():
    shell = SpillingShell()
    names = [f"namespace-{i}" for i in range(disks.NAMESPACES_KEPT + 1)]
    for name in names:
        shell.of_namespace(name).finish_task(name, rate=10 * MB)
    assert [shell.budget("n0", name) for name in (names[0], names[-1])] == [math.inf, 10 * MB]


@pytest.mark.parametrize("dumped", [{}, {"namespaces": {"": -1}}, {"bytesPerSecond": 5.0}])
def test_a_dump_without_a_rate_of_a_namespace_says_nothing(dumped):
    shell = SpillingShell()
    shell.disks.load(dumped)
    assert shell.budget("n0") == math.inf


def test_a_restart_keeps_the_usual_rate():
    before, after = SpillingShell(), SpillingShell()
    before.finish_task("a", "n0", 10 * MB)
    after.disks.load(json.loads(json.dumps(before.disks.dump())))
    assert after.budget("n0") == 10 * MB


def test_a_third_spilling_task_is_refused_where_the_measured_disk_carries_two():
    shell = SpillingShell(core.amount(9000, 3), disk_share=0.5)
    shell.disks.load({"namespaces": {"": 80 * MB}})  # of which half may be spills, of 20 MB/s each
    spilling = shell.task_class
    first = core.task_class(core.job(), core.amount(1000, 1), "first")
    shell.report(core.submitted(core.job(), first, spilling, tasks={spilling.id: 9}))
    shell.report_task(model.Placed, core.task(first), "n9")
    shell.queue.submit(core.job(), [spilling], core.tasks(spilling, 9))
    plan = shell.cycle()
    assert len(core.placements(plan)) == 2
    assert "disk" in plan.diagnosis(spilling.id).message
