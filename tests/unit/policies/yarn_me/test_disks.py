"""Disk budgets from what tasks and instruments measured."""

import json
import math

import pytest

from boathouse_policies import model, yarn_me
from boathouse_policies.framework import RunningTasks
from boathouse_policies.yarn_me.penalty import Elastic, Mapper
from tests.unit.policies import builders as make

MB = 1e6
IDEAL = make.amount(1000, 4)


class Shell:
    """One elastic class, whose tasks spill 100 MB, which are written and read in 10 s."""

    def __init__(self, **config) -> None:
        self.running = RunningTasks()
        outlook = yarn_me.Outlook(self.running)
        self.disks = yarn_me.Disks(yarn_me.Config(disk_share=1.0, **config), outlook)
        self.observers = (self.running, outlook, self.disks)
        run_time = Mapper(ideal_s=5.0, undersized_s=10.0, ideal_bytes=IDEAL.memory_bytes, output_bytes=100 * MB)
        job, estimates = make.job(), Elastic(run_time, ideal_bytes=IDEAL.memory_bytes)
        self.task_class = make.task_class(job, IDEAL, estimates=estimates)
        self.tell(model.Submitted(now_s=0.0, job=job, classes=(self.task_class,), tasks={}))

    def tell(self, event) -> None:
        for one in self.observers:
            one.observe(event)

    def about(self, task, on) -> model.About:
        one = self.task_class
        return {"now_s": 0.0, "task": model.TaskId(task), "task_class": one.id, "job": one.job, "node": on}

    def place(self, task, on="n0", gib=1) -> None:
        size = make.amount(1000, gib)
        self.tell(model.Placed(**self.about(task, on), resources=size, distance=model.Distance.ANYWHERE))

    def finish(self, task, on="n0", rate=0.0) -> None:
        self.tell(model.Finished(**self.about(task, on), duration_s=10.0, counters={"spill_bytes_per_s": rate}))

    def measured(self, **usage) -> None:
        self.tell(model.Measured(now_s=0.0, name=model.NodeName("n0"), usage=usage))


def test_there_is_no_budget_until_a_rate_is_known():
    shell = Shell()
    shell.finish("quick")
    assert (shell.disks.has_budget, shell.disks.budget("n0")) == (False, math.inf)


def test_a_disk_carried_the_rate_of_a_task_times_the_tasks_that_spilled_there():
    shell = Shell()
    shell.place("a")
    shell.place("b")
    shell.place("whole", gib=4)
    shell.finish("a", rate=30 * MB)
    assert shell.disks.budget("n0") == 60 * MB


def test_newer_rates_count_for_three_tenths():
    shell = Shell()
    shell.finish("a", rate=100 * MB)
    shell.finish("b", rate=50 * MB)
    assert shell.disks.budget("n0") == pytest.approx(85 * MB)


def test_a_node_without_figures_has_the_median_of_the_others():
    shell = Shell(disk_bytes_per_s=1.0)
    for on, rate in (("n0", 10 * MB), ("n1", 20 * MB), ("n2", 90 * MB)):
        shell.finish(on, on, rate)
    assert shell.disks.budget("n9") == 20 * MB


def test_what_others_do_to_a_disk_is_taken_off():
    shell = Shell(disk_bytes_per_s=100 * MB)
    shell.place("a")
    shell.measured(disk_bytes_per_s=50 * MB)
    assert shell.disks.budget("n0") == pytest.approx(70 * MB)  # 20 MB/s are of the task itself
    shell.measured(cpu_cores=1.0)
    assert shell.disks.budget("n0") == 100 * MB


def test_nodes_that_went_do_not_count_but_the_last_one():
    shell = Shell()
    shell.finish("a", "n0", 10 * MB)
    shell.finish("b", "n1", 30 * MB)
    for name in ("n0", "n1"):
        shell.tell(model.NodeChanged(now_s=0.0, name=model.NodeName(name), node=None))
    assert shell.disks.budget("n2") == 30 * MB


@pytest.mark.parametrize(("dumped", "budget"), [({}, math.inf), ({"bytesPerSecond": -1}, math.inf)])
def test_a_dump_without_a_rate_says_nothing(dumped, budget):
    shell = Shell()
    shell.disks.load(dumped)
    assert shell.disks.budget("n0") == budget


def test_a_restart_keeps_the_usual_rate():
    before, after = Shell(), Shell()
    before.finish("a", "n0", 10 * MB)
    after.disks.load(json.loads(json.dumps(before.disks.dump())))
    assert after.disks.budget("n0") == 10 * MB


def test_a_third_spilling_task_is_refused_where_the_measured_disk_carries_two():
    profile = yarn_me.build()
    world = make.World([make.node(allocatable=make.amount(9000, 3))], profile=profile)
    disks = next(one for one in profile.observers if isinstance(one, yarn_me.Disks))
    disks.load({"bytesPerSecond": 80 * MB})  # of which half may be spills, of 20 MB/s each
    one = Shell().task_class
    job = make.job()
    first = make.task_class(job, make.amount(1000, 1), "first")
    for event in (
        model.Submitted(now_s=0.0, job=job, classes=(first, one), tasks={one.id: 9}),
        model.Placed(
            now_s=0.0,
            task=model.TaskId("long"),
            task_class=first.id,
            job=job.id,
            node=model.NodeName("n9"),
            resources=first.resources,
            distance=model.Distance.ANYWHERE,
        ),
    ):
        for observer in profile.observers:
            observer.observe(event)
    world.room.submit(job, [one], make.tasks(one, 9))
    plan = world.cycle()
    assert len(make.placements(plan)) == 2
    assert "disk" in plan.diagnosis(one.id).message
