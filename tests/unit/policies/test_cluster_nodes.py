"""What policies do with the nodes of Hadoop clusters: pods that run without end, and run tasks of their own."""

import pytest

from boathouse_policies import framework, fspy, koala, model, profiles
from tests.unit.policies import builders as make
from tests.unit.policies import test_boathouse

ALL = {"suspend": True, "resize": True, "speculate": True, "scale": True, "probe": True}
SIZE = make.amount(1000, 2)
BY_SIZE = ("boathouse", "fspy", "srjf")
Adjustment = model.Suspend | model.Resume | model.Resize | model.Speculate


class Shell(test_boathouse.Shell):
    """Policies are told of a cluster's job and load, and not of its nodes one by one."""

    def cluster(self, count: int = 1, size: model.Resources = SIZE, name: str = "etl", **fields) -> model.TaskClass:
        job = make.job(name, submitted_s=self.now_s, **fields)
        estimates = model.Fixed(seconds=60.0)
        one = make.task_class(job, size, "transient", stage=model.Stage.NODE, estimates=estimates)
        self.tell(model.Submitted(now_s=self.now_s, job=job, classes=(one,), tasks={one.id: count}))
        self.room.submit(job, [one], make.tasks(one, count), placed=self.ledger)
        return one

    def report(self, one: model.TaskClass, **load: int) -> None:
        counters = koala.Cluster(name=one.job, **{"core_nodes": 2, "first_core_nodes": 2, "slots": 4} | load).counters()
        about = {"task": model.TaskId("ns/m"), "task_class": one.id, "job": one.job, "node": model.NodeName("n0")}
        progress = model.Progress(now_s=self.now_s, **about, fraction=0.0, phase="cluster", counters=counters)
        self.tell(progress)

    def tell(self, event) -> None:
        if not isinstance(event, model.Placed | model.Started) or "transient" not in event.task_class:
            super().tell(event)

    def end_maps(self, plan: framework.Plan, seconds: float) -> None:
        """The maps of a plan succeed."""
        for one in make.placements(plan):
            if one.task_class.stage is model.Stage.MAP:
                told = {"now_s": self.now_s, "task": one.task.id, "task_class": one.task_class.id, "job": one.job.id}
                self.tell(model.Finished(**told, node=one.node, duration_s=seconds, counters={}))
                self.end(one.task.id)


def placed(plan: framework.Plan, one: model.TaskClass) -> list[model.Placement]:
    return [placement for placement in make.placements(plan) if placement.task_class.id == one.id]


@pytest.mark.parametrize("profile", profiles.names())
@pytest.mark.parametrize("left", [make.amount(4000, 1.9), make.amount(900, 8)], ids=["memory", "cpu"])
def test_a_node_gets_all_that_it_requests_or_waits(profile, left):
    shell = Shell(profile=profile, **ALL)
    shell.leave("n0", cpu=left.cpu_milli, gib=left.memory_bytes / make.GIB)
    one = shell.cluster()
    assert placed(shell.cycle(), one) == []
    shell.end("ns/pod-n0")
    shell.now_s = 30.0
    assert [placement.resources for placement in placed(shell.cycle(), one)] == [SIZE]


@pytest.mark.parametrize("profile", profiles.names())
def test_running_nodes_are_never_suspended_resized_or_started_twice(profile):
    shell = Shell(*make.nodes(2), profile=profile, **ALL)
    one = shell.cluster(3)
    assert len(placed(shell.cycle(), one)) == 3
    shell.job("maps", 12, seconds=None)
    decided = []
    for _ in range(60):
        shell.now_s += 10.0
        shell.report(one, running_tasks=4)
        for node in ("n0", "n1"):
            shell.tell(model.Measured(now_s=shell.now_s, name=model.NodeName(node), usage={"cpu_cores": 3.9}))
        decided += [each for each in shell.cycle().decisions if isinstance(each, Adjustment)]
    assert [each for each in decided if "transient" in str(each.task.task_class)] == []


@pytest.mark.parametrize("profile", ["boathouse", "fspy"])
def test_a_cluster_that_runs_gets_another_node_though_short_jobs_never_cease(profile):
    shell, plans = Shell(profile=profile), []
    shell.ledger.observe(make.pod("master", size=make.amount(100, 0.1), job=model.JobId("etl")))
    for number in range(8):
        shell.job(f"before-{number}", seconds=10.0)
    plans.append(shell.cycle())
    one = shell.cluster()
    for number in range(120):
        shell.now_s += 10.0
        shell.end_maps(plans[-1], 10.0)
        for more in range(5):
            shell.job(f"job-{number}-{more}", seconds=10.0)
        plans.append(shell.cycle())
        if placed(plans[-1], one):
            return
    pytest.fail("the cluster never got its node")


def test_by_the_shortest_remaining_time_a_node_counts_as_a_minute():
    shell = Shell(make.node(allocatable=SIZE), profile="srjf")
    long, short = shell.job("long", seconds=61.0), shell.job("short", seconds=59.0)
    one = shell.cluster()
    order = []
    for _ in range(3):
        (first,) = make.placements(shell.cycle())
        order.append(first.task_class.id)
        shell.end(first.task.id)
    assert order == [short.id, one.id, long.id]


@pytest.mark.parametrize("profile", BY_SIZE)
def test_a_large_cluster_goes_after_a_short_job(profile):
    shell = Shell(make.node(allocatable=SIZE), profile=profile)
    shell.cluster(8)
    short = shell.job("short", seconds=10.0)
    assert [each.task_class.id for each in make.placements(shell.cycle())] == [short.id]


@pytest.mark.parametrize("profile", ["fair", "yarn"])
def test_what_a_cluster_holds_counts_for_its_share(profile):
    shell = Shell(make.node(allocatable=make.amount(3000, 6)), profile=profile)
    one = shell.cluster(3)
    shell.ledger.observe(make.pod("running", size=make.amount(2000, 4), job=one.job, queue=model.QueueName("default")))
    other = shell.job("other", seconds=None)
    assert [each.task_class.id for each in make.placements(shell.cycle())] == [other.id]


@pytest.mark.parametrize("profile", profiles.names())
def test_a_queue_limits_the_nodes_of_its_clusters(profile):
    shell = Shell(profile=profile)
    shell.room.set_queues([model.Queue.of(model.QueueName("default"), limits={"cpu": 3000})])
    one = shell.cluster(4)
    plan = shell.cycle()
    assert len(placed(plan, one)) == 3
    assert plan.left[one.id].verdict.code is model.Code.QUEUE_LIMIT


def test_no_size_is_predicted_for_a_cluster_and_no_probe_is_run():
    shell = Shell()
    one = shell.cluster(2)
    order = shell.profile.order
    assert isinstance(order, fspy.SizeBased)
    assert not order.needs_probe(one.job)
    assert order.prediction(one.job).source is fspy.prediction.Source.STATED


def test_interference_is_not_predicted_for_nodes_nor_by_them():
    shell = Shell(*make.nodes(2))
    one = shell.cluster(2)
    plan = shell.cycle()
    assert len(placed(plan, one)) == 2
    assert not any(name == "slowdown" for each in make.placements(plan) for name, _ in each.figures)
    assert shell.profile.running.tasks == {}


@pytest.mark.parametrize("stage", [model.Stage.DRIVER, model.Stage.EXECUTOR])
def test_a_growing_cluster_takes_no_node_that_is_reserved_for_spark(stage):
    shell = Shell()
    shell.job("maps", 3)
    shell.cycle()
    shell.job("spark", size=make.amount(4000, 8), stage=stage, seconds=None)
    shell.cycle()
    assert list(shell.room.reserved) == ["n0"]
    one = shell.cluster()
    shell.now_s = 1.0
    assert placed(shell.cycle(), one) == []
