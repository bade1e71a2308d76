"""What policies do with the nodes of Hadoop clusters: pods that run without end, and run tasks of their own."""

import pytest

from boathouse_policies import framework, fspy, koala, model, profiles
from tests.builders import core, core_elastic
from tests.builders.core_elastic import SIZE

ALL = {"suspend": True, "resize": True, "speculate": True, "scale": True, "probe": True}
BY_SIZE = ("boathouse", "fspy", "srjf")
Adjustment = model.Suspend | model.Resume | model.Resize | model.Speculate


class ClusterShell(core_elastic.ElasticShell):
    """A shell that reports of a cluster its job and load, and not its nodes one by one."""

    def submit_cluster(self, count: int = 1) -> model.TaskClass:
        fields = {"class_name": "transient", "stage": model.Stage.NODE, "estimates": model.Fixed(seconds=60.0)}
        return self.submit("etl", count, SIZE, **fields)

    def report_load(self, of: model.TaskClass, **load: int) -> None:
        counters = koala.Cluster(name=of.job, **{"core_nodes": 2, "first_core_nodes": 2, "slots": 4} | load).counters()
        self.report_task(model.Progress, core.task(of), phase="cluster", counters=counters)

    def report(self, *events: model.Event) -> None:
        for event in events:
            if not isinstance(event, model.Placed | model.Started) or "transient" not in event.task_class:
                super().report(event)

    def finish_maps(self, plan: framework.Plan) -> None:
        """The maps of a plan succeed."""
        for placed in core.placements(plan):
            if placed.task_class.stage is model.Stage.MAP:
                self.finish(placed)


def placements_of(plan: framework.Plan, of: model.TaskClass) -> list[model.Placement]:
    return [placement for placement in core.placements(plan) if placement.task_class.id == of.id]


@pytest.mark.parametrize("profile", profiles.names())
@pytest.mark.parametrize("left", [core.amount(4000, 1.9), core.amount(900, 8)], ids=["memory", "cpu"])
def test_a_node_gets_all_that_it_requests_or_waits(profile, left):
    shell = ClusterShell(profile=profile, **ALL)
    shell.leave("n0", cpu=left.cpu_milli, gib=left.memory_bytes / core.GIB)
    nodes = shell.submit_cluster()
    assert placements_of(shell.cycle(), nodes) == []
    shell.end("ns/pod-n0")
    shell.now_s = 30.0
    assert [placement.resources for placement in placements_of(shell.cycle(), nodes)] == [SIZE]


@pytest.mark.parametrize("profile", profiles.names())
def test_running_nodes_are_never_suspended_resized_or_started_twice(profile):
    shell = ClusterShell(*core.nodes(2), profile=profile, **ALL)
    nodes = shell.submit_cluster(3)
    assert len(placements_of(shell.cycle(), nodes)) == 3
    shell.submit("maps", 12, seconds=None)
    decided = []
    for _ in range(20):
        shell.now_s += 30.0
        shell.report_load(nodes, running_tasks=4)
        for node in ("n0", "n1"):
            shell.report(model.Measured(now_s=shell.now_s, name=model.NodeName(node), usage={"cpu_cores": 3.9}))
        decided += [decision for decision in shell.cycle().decisions if isinstance(decision, Adjustment)]
    assert [adjustment for adjustment in decided if "transient" in str(adjustment.task.task_class)] == []


@pytest.mark.parametrize("profile", ["boathouse", "fspy"])
def test_a_cluster_that_runs_gets_another_node_though_short_jobs_never_cease(profile):
    shell, plans = ClusterShell(profile=profile), []
    shell.ledger.observe(core.account("master", size=core.amount(100, 0.1), job=model.JobId("etl")))
    for number in range(8):
        shell.submit(f"before-{number}", seconds=10.0)
    plans.append(shell.cycle())
    nodes = shell.submit_cluster()
    for number in range(24):
        shell.now_s += 50.0
        shell.finish_maps(plans[-1])
        for more in range(5):
            shell.submit(f"job-{number}-{more}", seconds=10.0)
        plans.append(shell.cycle())
        if placements_of(plans[-1], nodes):
            return
    pytest.fail("the cluster never got its node")


def test_by_the_shortest_remaining_time_a_node_counts_as_a_minute():
    shell = ClusterShell(core.node(allocatable=SIZE), profile="srjf")
    long, short = shell.submit("long", seconds=61.0), shell.submit("short", seconds=59.0)
    nodes = shell.submit_cluster()
    order = []
    for _ in range(3):
        (first,) = core.placements(shell.cycle())
        order.append(first.task_class.id)
        shell.end(first.task.id)
    assert order == [short.id, nodes.id, long.id]


@pytest.mark.parametrize("profile", BY_SIZE)
def test_a_large_cluster_is_placed_after_a_short_job(profile):
    shell = ClusterShell(core.node(allocatable=SIZE), profile=profile)
    shell.submit_cluster(8)
    short = shell.submit("short", seconds=10.0)
    assert [placement.task_class.id for placement in core.placements(shell.cycle())] == [short.id]


@pytest.mark.parametrize("profile", ["fair", "yarn"])
def test_what_a_cluster_holds_counts_for_its_share(profile):
    shell = ClusterShell(core.node(allocatable=core.amount(3000, 6)), profile=profile)
    nodes = shell.submit_cluster(3)
    shell.ledger.observe(
        core.account("running", size=core.amount(2000, 4), job=nodes.job, queue=model.QueueName("default"))
    )
    other = shell.submit("other", seconds=None)
    assert [placement.task_class.id for placement in core.placements(shell.cycle())] == [other.id]


@pytest.mark.parametrize("profile", profiles.names())
def test_a_queue_limits_the_nodes_of_its_clusters(profile):
    shell = ClusterShell(profile=profile)
    shell.queue.set_queues([core.queue(cpu=3000)])
    nodes = shell.submit_cluster(4)
    plan = shell.cycle()
    assert len(placements_of(plan, nodes)) == 3
    assert plan.left[nodes.id].verdict.code is model.Code.QUEUE_LIMIT


def test_no_size_is_predicted_for_a_cluster_and_no_probe_is_run():
    shell = ClusterShell()
    nodes = shell.submit_cluster(2)
    order = shell.profile.order
    assert isinstance(order, fspy.SizeBased)
    assert not order.needs_probe(nodes.job)
    assert order.prediction(nodes.job).source is fspy.prediction.Source.STATED


def test_interference_is_not_predicted_for_nodes_nor_by_them():
    shell = ClusterShell(*core.nodes(2))
    nodes = shell.submit_cluster(2)
    plan = shell.cycle()
    assert len(placements_of(plan, nodes)) == 2
    assert not any(name == "slowdown" for placement in core.placements(plan) for name, _ in placement.figures)
    assert shell.profile.running.tasks == {}


@pytest.mark.parametrize("stage", [model.Stage.DRIVER, model.Stage.EXECUTOR])
def test_a_growing_cluster_takes_no_node_that_is_reserved_for_spark(stage):
    shell = ClusterShell()
    shell.submit("maps", 3)
    shell.cycle()
    shell.submit_spark(stage=stage)
    shell.cycle()
    assert list(shell.queue.reserved) == ["n0"]
    nodes = shell.submit_cluster()
    shell.now_s = 1.0
    assert placements_of(shell.cycle(), nodes) == []
