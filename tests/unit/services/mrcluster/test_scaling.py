"""Decisions of the policy that resizes clusters, and the load that clusters report to it."""

import dataclasses

from msgspec import structs

from boathouse.resources.mrcluster.names import Role
from boathouse.scheduling.adjuster import NO_CLUSTER
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster.planning import sizing
from boathouse.services.mrcluster.planning.observation import NO_SIZES, Observation, Plan
from boathouse.services.mrcluster.scaling import AT_MAXIMUM, LEAVING, NOT_READY, Scaling, Submission
from boathouse_policies import koala, model, profiles
from boathouse_task.cluster_contract import AgentReport, NodeFigures, YarnFigures, YarnState
from tests.builders import core
from tests.builders.simulated_cluster import SimulatedCluster, ready_cluster

UID = ObjectUid("a")
MASTER = model.TaskId("ns/etl-master")


def busy_cluster(name: str = "a", transient: int = 0, **fields) -> koala.Cluster:
    """Return the load of a cluster of three core nodes with many pending tasks."""
    busy = {"slots": 6, "node_slots": 2, "running_tasks": 6, "runnable_tasks": 90, "core_nodes": 3}
    values = busy | {"first_core_nodes": 3, "transient_nodes": transient, "most_nodes": 11} | fields
    return koala.Cluster(name=model.JobId(name), **values)


class ScalingShell(core.Shell):
    """A scheduler with profile `fair` whose clusters are resized, and nodes with room for one worker each."""

    def __init__(self, nodes: int = 8) -> None:
        profile = profiles.build("fair", switches=profiles.Switches(scale=True))
        super().__init__([core.node(f"n{i}") for i in range(nodes)], profile=profile)
        self.marked: list[ObjectUid] = []
        self.scaling = Scaling(profile, profile.observers, lambda: self.now_s, self.marked.append)

    def submit(self, name: str = "a", **constants) -> None:
        job = core.job(name)
        classes = tuple(core.task_class(job, core.amount(4000, 8), name=role) for role in ("master", "transient"))
        constants = koala.Config(**constants)
        submission = Submission(job=job, classes=classes, worker=classes[1].id, tasks={}, constants=constants)
        self.scaling.submit(ObjectUid(name), submission)

    def report(self, name: str = "a", **fields) -> None:
        self.scaling.report(ObjectUid(name), busy_cluster(name, **fields), master=MASTER, node="n0")

    def cycle_at(self, now_s: float) -> list[str]:
        """Return the results of the decisions at a time."""
        self.now_s = now_s
        advice = [controller.advise(self.queue, self.view()) for controller in self.profile.controllers]
        return [self.scaling.take(decision) for decisions in advice for decision in decisions]


def test_a_busy_cluster_gets_a_target_with_the_offer_in_its_reason():
    shell = ScalingShell()
    shell.submit()
    shell.report()
    assert shell.cycle_at(30.0) == [""]
    target = shell.scaling.target(UID)
    assert (target.nodes, target.offer, target.stores) == (8, 5, False)
    assert target.reason == "GSP: F = 16.00 is above 1.5; 8 of 8 idle nodes, weight 1 of 1"
    assert shell.marked == [UID]


def test_a_target_is_dropped_once_a_plan_used_it_and_a_later_one_is_kept():
    shell = ScalingShell()
    shell.submit()
    shell.report()
    shell.cycle_at(30.0)
    used = shell.scaling.target(UID)
    shell.cycle_at(60.0)
    shell.scaling.use(UID, used)
    assert shell.scaling.target(UID) is not None
    shell.scaling.use(UID, shell.scaling.target(UID))
    assert shell.scaling.target(UID) is None


def test_two_clusters_share_idle_nodes_by_weight():
    shell = ScalingShell(nodes=6)
    for name in ("a", "b"):
        shell.submit(name)
    shell.report("a", weight=2)
    shell.report("b")
    shell.cycle_at(30.0)
    assert [shell.scaling.target(ObjectUid(name)).offer for name in ("a", "b")] == [4, 2]


def scale(workers: int, name: str = "a") -> model.Scale:
    return model.Scale(job=model.JobId(name), workers=workers, reason="")


def test_decisions_that_cannot_be_carried_out_are_refused_with_the_reason():
    shell = ScalingShell()
    assert shell.scaling.take(scale(5)) == NO_CLUSTER
    shell.submit()
    assert shell.scaling.take(scale(5)) == NOT_READY
    shell.report(transient=8)
    assert shell.scaling.take(scale(12)) == AT_MAXIMUM
    shell.report(transient=4, leaving_nodes=2)
    assert shell.scaling.take(scale(5)) == LEAVING
    assert shell.scaling.target(UID) is None


def test_a_cluster_that_cannot_be_resized_loses_its_target():
    shell = ScalingShell()
    shell.submit()
    shell.report()
    shell.cycle_at(30.0)
    shell.scaling.report(UID, None, master=MASTER, node="n0")
    assert shell.scaling.target(UID) is None


def test_a_cluster_that_cannot_be_resized_leaves_all_idle_nodes_to_others():
    shell = ScalingShell(nodes=4)
    for name in ("a", "b"):
        shell.submit(name)
        shell.report(name)
    shell.scaling.report(UID, None, master=MASTER, node=None)
    assert shell.cycle_at(30.0) == [""]
    assert shell.scaling.target(ObjectUid("b")).offer == 4
    for name in ("a", "b"):
        shell.report(name)
    assert shell.cycle_at(60.0) == ["", ""]


def test_a_cluster_has_the_constants_of_its_spec():
    shell = ScalingShell()
    shell.submit(policy=koala.Policy.GGP, offer_nodes=1, greedy_every_s=60.0)
    shell.report()
    assert shell.cycle_at(59.0) == []
    assert shell.cycle_at(60.0) == [""]
    assert shell.scaling.target(UID).offer == 1


def test_a_cluster_that_ended_is_forgotten():
    shell = ScalingShell()
    shell.submit()
    shell.report()
    shell.scaling.end(UID, succeeded=True)
    assert shell.cycle_at(30.0) == []
    assert shell.scaling.target(UID) is None


def test_the_load_settles_without_growing_and_shrinking_in_turn():
    """80 tasks on nodes of two slots: the policy stops between its thresholds, and stays there."""
    shell, nodes, sizes = ScalingShell(nodes=40), 3, []
    shell.submit()
    for i in range(40):
        running = min(80, 2 * nodes)
        fields = {"slots": 2 * nodes, "running_tasks": running, "runnable_tasks": 80 - running, "most_nodes": 60}
        shell.report(transient=nodes - 3, **fields)
        shell.cycle_at(30.0 * (i + 1))
        target = shell.scaling.target(UID)
        nodes = target.nodes if target else nodes
        shell.scaling.use(UID, target)
        sizes.append(nodes)
    assert sizes == sorted(sizes)
    assert sizes[-1] == sizes[-20]
    assert 80 / (2 * sizes[-1]) <= 1.5


# The load of a cluster


def load_of(cluster: SimulatedCluster, **yarn) -> koala.Cluster | None:
    """Return the load that the policy gets if the ResourceManager reports this."""
    observation: Observation = cluster.observation()
    report = AgentReport(
        hdfs=observation.report.hdfs, nodes=observation.report.nodes, yarn=YarnFigures(started_s=0, **yarn)
    )
    observation = dataclasses.replace(observation, report=report, sizes=dataclasses.replace(NO_SIZES, map_mb=256))
    return sizing.for_policy(observation, Plan(state=observation.state, marks=observation.marks))


def test_masters_of_applications_are_no_tasks_and_waiting_applications_are():
    found = load_of(ready_cluster(weight=3), running=5, apps_running=2, pending=7, apps_pending=1)
    assert (found.running_tasks, found.runnable_tasks) == (3, 8)


def test_nodes_that_start_are_pending_and_slots_are_those_of_running_nodes():
    cluster = ready_cluster(weight=3)
    cluster.decide(5)
    cluster.reconcile()
    found = load_of(cluster)
    assert (found.core_nodes, found.transient_nodes, found.pending_nodes) == (3, 0, 2)
    assert (found.slots, found.node_slots, found.weight) == (12, 4, 3)


def test_a_cluster_takes_no_more_nodes_while_some_found_no_room():
    cluster = ready_cluster(weight=3)
    assert load_of(cluster).growth == 8
    cluster.decide(5)
    cluster.reconcile()
    cluster.reconcile()
    assert load_of(cluster).growth == 0


def test_a_lost_node_that_yarn_has_not_noticed_has_no_slots():
    cluster = ready_cluster(weight=3)
    lost = NodeFigures("t0", yarn=YarnState.RUNNING, memory_mb=1024)
    before = load_of(cluster).slots
    cluster.report = structs.replace(cluster.report, nodes=[*cluster.report.nodes, lost])
    assert load_of(cluster).slots == before


def test_without_a_fresh_report_there_is_no_load():
    cluster = ready_cluster(weight=3)
    cluster.now_s += 20
    assert load_of(cluster) is None


def test_idle_nodes_that_a_long_report_leaves_out_count():
    cluster = ready_cluster(weight=3)
    cluster.decide(5)
    cluster.settle(3)
    observation = cluster.observation()
    nodes = [node for node in observation.report.nodes if node.host.startswith("c")]
    report = AgentReport(hdfs=observation.report.hdfs, nodes=nodes, yarn=observation.report.yarn, idle_nodes=2)
    observation = dataclasses.replace(observation, report=report)
    found = sizing.for_policy(observation, Plan(state=observation.state, marks=observation.marks))
    assert (found.transient_nodes, found.pending_nodes, found.slots) == (2, 0, 3 * 2 + 2 * 2)


def test_false_reports_make_a_cluster_grow_within_its_maximum_only():
    cluster = ready_cluster(weight=3)
    most = 2**62
    found = load_of(cluster, running=most, pending=most)
    assert found.most_nodes == 11
    cluster.report = AgentReport(
        hdfs=cluster.report.hdfs,
        yarn=YarnFigures(started_s=0, pending=most),
        nodes=[NodeFigures(f"x{i}", yarn=YarnState.RUNNING, memory_mb=most) for i in range(9)],
    )
    cluster.decide(10**9)
    cluster.reconcile()
    assert len(cluster.state.wanted_transient) == 8
    assert cluster.hosts(Role.TRANSIENT) == []
