"""Lives of clusters, step by step, with a simulated HDFS and YARN."""

import dataclasses

import pytest
from msgspec import structs

from boathouse.resources import names
from boathouse.resources.mrcluster.names import ConditionType, EventReason, Reason, Role
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning import conditions, draining, planner, sizing
from boathouse.services.mrcluster.planning.observation import Plan
from boathouse_task.cluster_contract import DfsState, YarnState
from tests.builders.simulated_cluster import SimulatedCluster, ready_cluster

CORE, TRANSIENT = Role.CORE, Role.TRANSIENT


def four_core_nodes(**spec) -> SimulatedCluster:
    """Return a cluster that had three at first, so that one may leave."""
    cluster = ready_cluster(**spec)
    cluster.spec["core"] = {"count": 4}
    cluster.pass_quiet_time()
    return cluster


# Start


def test_a_new_cluster_submits_its_master_and_core_nodes_in_order():
    plan = SimulatedCluster().reconcile()
    assert plan.submit == ["master", "c0", "c1", "c2"]


def test_a_cluster_becomes_ready_and_records_its_id_and_replication():
    state = ready_cluster().state
    assert (state.cluster_id, state.first_core_nodes, state.replication) == ("CID-1", 3, 3)
    assert (state.core.ready, state.core.pending, state.settings) == (3, 0, "first")
    assert state.queue == "default"


def test_a_cluster_is_not_ready_before_all_first_core_nodes_are_live():
    cluster = SimulatedCluster()
    cluster.reconcile()
    for host in ("master", "c0", "c1"):
        cluster.create(host)
        cluster.start(host)
    cluster.exchange()
    cluster.reconcile()
    assert cluster.condition(ConditionType.HDFS_AVAILABLE) == ("False", Reason.DATA_NODES_MISSING)
    assert cluster.state.phase == "Starting"


def test_a_cluster_is_not_ready_before_the_node_managers_of_all_first_core_nodes_run():
    cluster = SimulatedCluster()
    state = cluster.yarn.state
    cluster.yarn.state = lambda host, up: state(host, up) if host != "c2" else YarnState.NONE
    cluster.settle(20)
    assert cluster.condition(ConditionType.READY) == ("False", Reason.NODE_MANAGERS_MISSING)
    message = cluster.state.condition(ConditionType.READY).message
    assert message == "2 of 3 core nodes have a NodeManager that runs"
    cluster.yarn.state = state
    cluster.turn()
    assert cluster.state.phase == "Ready"
    cluster.yarn.state = lambda host, up: state(host, up) if host == "c0" else YarnState.NONE
    cluster.turn()
    assert cluster.state.phase == "Ready"  # later one is enough


def test_conditions_say_why_a_pod_does_not_start():
    cluster = SimulatedCluster()
    cluster.reconcile()
    cluster.create("master")
    cluster.change("master", problem=Problem(reason="ImagePullFailed", message="not found"))
    cluster.reconcile()
    for condition in (ConditionType.READY, ConditionType.HDFS_AVAILABLE, ConditionType.YARN_AVAILABLE):
        assert cluster.state.condition(condition).message.endswith("; master: not found (ImagePullFailed)")


def test_planning_again_without_changes_changes_nothing():
    cluster = ready_cluster()
    before = cluster.status
    plan = cluster.reconcile()
    assert cluster.status == before
    assert (plan.delete, list(plan.submit), plan.events) == ((), [], ())


def test_a_cluster_is_not_ready_without_a_node_manager_on_a_core_node():
    cluster = ready_cluster()
    cluster.yarn.state = lambda _host, _up: YarnState.NONE
    cluster.turn()
    assert cluster.condition(ConditionType.YARN_AVAILABLE) == ("False", Reason.NODE_MANAGERS_MISSING)
    assert cluster.condition(ConditionType.READY) == ("False", Reason.NODE_MANAGERS_MISSING)


def test_a_cluster_is_not_ready_while_the_name_node_is_in_safe_mode():
    cluster = ready_cluster()
    cluster.report = structs.replace(cluster.report, hdfs=structs.replace(cluster.report.hdfs, safe_mode=True))
    cluster.reconcile()
    assert cluster.condition(ConditionType.HDFS_AVAILABLE) == ("False", Reason.SAFE_MODE)
    assert cluster.state.condition(ConditionType.READY).message == "the NameNode is in safe mode"


def test_the_name_node_says_why_it_is_in_safe_mode():
    cluster = ready_cluster()
    hdfs = structs.replace(cluster.report.hdfs, safe_mode=True, safe_mode_text="Resources are\x1b low")
    cluster.report = structs.replace(cluster.report, hdfs=hdfs)
    cluster.reconcile()
    expected = "the NameNode is in safe mode: Resources are  low"
    assert cluster.state.condition(ConditionType.READY).message == expected


def test_node_managers_with_full_disks_are_counted():
    cluster = ready_cluster()
    cluster.yarn.state = lambda host, _up: YarnState.UNHEALTHY if host != "c0" else YarnState.NONE
    cluster.turn()
    expected = "0 of 3 core nodes have a NodeManager that runs; 2 are unhealthy, as with disks that are nearly full"
    assert cluster.state.condition(ConditionType.READY).message == expected


def test_blocks_without_a_replica_degrade_a_cluster():
    cluster = ready_cluster()
    cluster.hdfs.write({"c0"})
    cluster.hdfs.disks["c0"].clear()
    cluster.turn()
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.MISSING_BLOCKS)
    assert cluster.condition(ConditionType.READY) == ("False", Reason.MISSING_BLOCKS)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.4.2", ("False", Reason.HEALTHY)),
        ("3.4.2-vendor.7", ("False", Reason.HEALTHY)),
        ("", ("False", Reason.HEALTHY)),
        ("3.4.20", ("True", Reason.VERSION_MISMATCH)),
        ("3.3.6", ("True", Reason.VERSION_MISMATCH)),
    ],
)
def test_an_image_of_another_version_than_the_spec_degrades_a_cluster(version, expected):
    cluster = ready_cluster()
    cluster.report = structs.replace(cluster.report, hdfs=structs.replace(cluster.report.hdfs, version=version))
    cluster.reconcile()
    assert cluster.condition(ConditionType.DEGRADED) == expected
    assert cluster.condition(ConditionType.READY) == ("True", Reason.AVAILABLE)


def reconcile_error(cluster: SimulatedCluster, error: str) -> None:
    """Reconcile a report with an error of the agent."""
    cluster.exchange()
    cluster.report = structs.replace(cluster.report, error=error)
    cluster.reconcile()


def test_a_persistent_error_of_the_agent_degrades_a_cluster_until_it_is_gone():
    cluster, error = ready_cluster(), "NameNode: PUT /webhdfs/v1/mr-history: status 403"
    for _ in range(12):
        reconcile_error(cluster, error)
        assert cluster.condition(ConditionType.DEGRADED) == ("False", Reason.HEALTHY)
        cluster.now_s += 5
    reconcile_error(cluster, error)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.AGENT_FAILING)
    assert error in cluster.state.condition(ConditionType.DEGRADED).message
    assert cluster.condition(ConditionType.READY) == ("True", Reason.AVAILABLE)
    assert conditions.cluster_facts(cluster.observation(), cluster.state).is_ready
    cluster.forget()  # a new leader
    reconcile_error(cluster, error)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.AGENT_FAILING)
    reconcile_error(cluster, "")
    assert cluster.state.phase == "Ready"


@pytest.mark.parametrize("fields", [{"error": ""}, {"yarn": None}, {"hdfs": None}])
def test_short_errors_of_the_agent_and_those_of_a_missing_daemon_do_not_degrade_a_cluster(fields):
    cluster = ready_cluster()
    for second in range(0, 200, 5):
        cluster.exchange()
        cluster.report = structs.replace(
            cluster.report, **({"error": "status 404"} | (fields if second % 30 == 0 else {}))
        )
        cluster.reconcile()
        assert cluster.condition(ConditionType.DEGRADED)[1] != Reason.AGENT_FAILING
        cluster.now_s += 5


STORAGE = {"compute": False, "transient": {}, "resizing": {"policy": "Static"}}


def test_a_cluster_for_storage_alone_is_ready_with_hdfs_and_follows_its_spec():
    cluster = ready_cluster(**STORAGE, core={"count": 4})
    assert cluster.condition(ConditionType.YARN_AVAILABLE) == ("False", Reason.NO_COMPUTE)
    assert (cluster.state.load_percent, cluster.state.slots, cluster.state.addresses.resource_manager) == (
        None,
        None,
        None,
    )
    cluster.spec["core"] = {"count": 5}
    cluster.settle(20)
    cluster.hdfs.disks["c4"] |= {0}
    cluster.hdfs.blocks = 1
    cluster.settle(3)
    cluster.spec["core"] = {"count": 4}
    cluster.settle(40)
    assert cluster.hosts(CORE) == ["c0", "c1", "c2", "c3"]
    assert not cluster.hdfs.missing({"c0", "c1", "c2", "c3"})
    cluster.digest = "second"
    cluster.settle(80)
    assert cluster.state.settings == "second"


CRASHING = Problem(reason="CrashLoopBackOff", message="the container checkpoint ended with exit code 1")


def test_a_container_of_the_master_that_keeps_failing_degrades_a_ready_cluster():
    cluster = ready_cluster()
    cluster.change("master", problem=CRASHING)
    cluster.turn()
    assert cluster.condition(ConditionType.DEGRADED) == ("False", Reason.HEALTHY)
    cluster.settle(6)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.MASTER_CONTAINER_FAILING)
    message = cluster.state.condition(ConditionType.DEGRADED).message
    assert message == "master: the container checkpoint ended with exit code 1 (CrashLoopBackOff)"
    assert cluster.condition(ConditionType.READY) == ("True", Reason.AVAILABLE)
    cluster.forget()  # a new leader
    cluster.turn()
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.MASTER_CONTAINER_FAILING)
    cluster.change("master", problem=None)
    cluster.settle(5)  # it runs between two failures
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.MASTER_CONTAINER_FAILING)
    cluster.settle(2)
    assert cluster.condition(ConditionType.DEGRADED) == ("False", Reason.HEALTHY)


def test_a_container_of_the_master_that_failed_once_does_not_degrade_a_cluster():
    cluster = ready_cluster()
    cluster.change("master", problem=CRASHING)
    cluster.settle(2)
    cluster.change("master", problem=None)
    for _ in range(15):
        cluster.turn()
        assert cluster.condition(ConditionType.DEGRADED) == ("False", Reason.HEALTHY)


# Growing and shrinking


def test_a_decision_adds_nodes_once():
    cluster = ready_cluster()
    cluster.decide(5)
    cluster.settle(3)
    assert cluster.hosts(TRANSIENT) == ["t0", "t1"]
    assert cluster.state.next_transient == 2
    assert EventReason.GREW in cluster.event_reasons


def test_the_size_says_why():
    cluster = ready_cluster()
    cluster.decide(5)
    cluster.reconcile()
    assert cluster.state.size.reason == "by the test"


def test_a_decision_beyond_the_maximum_is_cut():
    cluster = ready_cluster(transient={"maximum": 1, "minimum": 0})
    cluster.decide(50)
    cluster.settle(3)
    assert cluster.hosts(TRANSIENT) == ["t0"]


def test_shrinking_drains_idle_nodes_first_and_waits_for_containers():
    cluster = ready_cluster()
    cluster.decide(6)
    cluster.settle(3)
    cluster.yarn.containers["t2"] = 1
    cluster.decide(3)
    cluster.turn()
    assert [node.host for node in cluster.state.leaving] == ["t1", "t0"]
    cluster.settle(5)
    assert cluster.hosts(TRANSIENT) == ["t2"]  # it has a container
    cluster.yarn.containers.clear()
    cluster.settle(5)
    assert cluster.hosts(TRANSIENT) == []


def test_a_node_that_does_not_drain_is_removed_after_its_timeout():
    cluster = ready_cluster()
    cluster.decide(4)
    cluster.settle(3)
    cluster.yarn.containers["t0"] = 1
    cluster.decide(3)
    cluster.settle(30)
    assert cluster.hosts(TRANSIENT) == ["t0"]
    cluster.settle(6)
    assert cluster.hosts(TRANSIENT) == []
    assert EventReason.DRAIN_TIMED_OUT in cluster.event_reasons


def test_a_drain_is_undone_before_a_new_node_is_added():
    cluster = ready_cluster()
    cluster.decide(4)
    cluster.settle(3)
    cluster.yarn.containers["t0"] = 1
    cluster.decide(3)
    cluster.turn()
    cluster.decide(4)
    cluster.settle(3)
    assert cluster.hosts(TRANSIENT) == ["t0"]
    assert cluster.state.next_transient == 1
    assert not cluster.yarn.excluded


def test_no_node_leaves_without_a_fresh_report():
    cluster = ready_cluster()
    cluster.decide(5)
    cluster.settle(3)
    cluster.now_s += 20
    cluster.target = None
    cluster.decide(3)
    cluster.reconcile()
    assert not cluster.state.leaving


def test_a_transient_node_without_room_is_withdrawn_and_its_number_burnt():
    cluster = ready_cluster()
    cluster.decide(4)
    for _ in range(14):
        cluster.now_s += 10
        cluster.exchange()
        cluster.reconcile()
    assert cluster.state.wanted_transient == ()
    assert cluster.state.next_transient == 1
    assert cluster.condition(ConditionType.RESIZING) == ("True", Reason.NO_ROOM)


def test_core_nodes_are_added_by_spec_and_removed_again_without_losing_a_block():
    cluster = ready_cluster()
    for _ in range(9):
        cluster.hdfs.write(cluster.up)
    cluster.spec["core"] = {"count": 5}
    cluster.settle(20)
    assert len(cluster.hosts(CORE)) == 5
    cluster.hdfs.disks["c4"] |= {0, 1, 2}
    cluster.spec["core"] = {"count": 3}
    cluster.settle(60)
    assert cluster.hosts(CORE) == ["c0", "c1", "c2"]
    assert not cluster.hdfs.missing({"c0", "c1", "c2"})


def test_ggdp_adds_core_nodes_up_to_its_maximum():
    cluster = ready_cluster(resizing={"policy": "GGDP"}, core={"count": 3, "maximum": 4}, transient={})
    cluster.decide(9, stores=True)
    cluster.settle(10)
    assert cluster.hosts(CORE) == ["c0", "c1", "c2", "c3"]


def test_core_nodes_leave_one_after_the_other():
    cluster = ready_cluster(core={"count": 3}, hdfs={"replication": 1})
    cluster.spec["core"] = {"count": 5}
    cluster.settle(20)
    cluster.hdfs.disks["c4"] = {0}
    cluster.hdfs.blocks = 1
    cluster.spec["core"] = {"count": 3}
    cluster.turn()
    assert len(cluster.state.leaving) == 1


def test_no_core_node_leaves_while_replicas_are_missing():
    cluster = four_core_nodes()
    cluster.hdfs.write({"c0", "c1"})
    cluster.hdfs.disks["c1"].clear()
    cluster.hdfs.replication = 9
    cluster.spec["core"] = {"count": 3}
    cluster.settle(10)
    assert len(cluster.hosts(CORE)) == 4
    assert not cluster.state.leaving
    assert blocked_shrink(cluster) == "4 core nodes, 3 wanted: HDFS has under-replicated blocks"


def blocked_shrink(cluster: SimulatedCluster) -> str:
    condition = cluster.state.condition(ConditionType.RESIZING)
    assert (condition.status, condition.reason) == ("True", Reason.SHRINK_BLOCKED)
    return condition.message


def test_a_core_node_stays_and_says_why_while_the_others_have_no_room_for_its_blocks():
    cluster = four_core_nodes()
    nodes = [structs.replace(node, free_bytes=100 << 20, used_bytes=400 << 20) for node in cluster.report.nodes]
    cluster.report = structs.replace(cluster.report, nodes=nodes)
    cluster.spec["core"] = {"count": 3}
    cluster.reconcile()
    assert blocked_shrink(cluster) == "4 core nodes, 3 wanted: the other core nodes have no room for the blocks of c3"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (DfsState.STALE, "the DataNode of c1 is not in service"),
        (DfsState.DEAD, "without c1 too few core nodes would be live: 1 more are needed"),
    ],
)
def test_a_core_node_stays_and_says_why_while_too_few_others_are_live(state, expected):
    cluster = four_core_nodes()
    lost = {"c0", "c1"}
    nodes = [structs.replace(node, dfs=state) if node.host in lost else node for node in cluster.report.nodes]
    cluster.report = structs.replace(cluster.report, nodes=nodes)
    cluster.spec["core"] = {"count": 3}
    cluster.reconcile()
    assert blocked_shrink(cluster) == f"4 core nodes, 3 wanted: {expected}"


def test_a_decommission_that_cannot_end_is_undone_reported_and_not_tried_again():
    cluster = four_core_nodes()
    cluster.spec["core"] = {"count": 3}
    cluster.turn()
    cluster.hdfs.replication = 4
    for _ in range(2):
        cluster.hdfs.write(cluster.up | {"c3"})
    cluster.hdfs.disks["c3"] |= {0, 1}
    cluster.settle(80)
    assert len(cluster.hosts(CORE)) == 4
    assert not cluster.state.leaving
    assert EventReason.DECOMMISSION_UNDONE in cluster.event_reasons
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)


def test_a_decommission_that_hdfs_does_not_begin_is_undone_and_reported():
    cluster = four_core_nodes()
    cluster.agent.refresh = lambda: None  # the commands of the image fail
    cluster.spec["core"] = {"count": 3}
    cluster.turn()
    cluster.report = structs.replace(cluster.report, error="refresh of hdfs ended with status 1", refreshed=False)
    cluster.reconcile()
    message = cluster.state.condition(ConditionType.RESIZING).message
    assert message == "nodes leaving: 1; the agent: refresh of hdfs ended with status 1"
    cluster.settle(70)
    assert len(cluster.hosts(CORE)) == 4
    assert not cluster.state.leaving
    assert EventReason.DECOMMISSION_UNDONE in cluster.event_reasons
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)


def test_a_time_without_reports_is_not_a_decommission_without_progress():
    cluster = four_core_nodes()
    cluster.agent.refresh = lambda: None
    cluster.spec["core"] = {"count": 3}
    cluster.settle(5)
    cluster.now_s += draining.STALL_S
    cluster.reconcile()
    cluster.settle(5)
    assert [node.host for node in cluster.state.leaving] == ["c3"]


def test_a_copied_core_node_says_for_which_containers_it_waits_and_leaves_when_they_have_ended():
    cluster = four_core_nodes()
    cluster.yarn.containers["c3"] = 2
    cluster.spec["core"] = {"count": 3}
    cluster.settle(50)
    message = cluster.state.condition(ConditionType.RESIZING).message
    assert message == "nodes leaving: 1; c3: copied; waits for 2 containers"
    cluster.settle(100)
    assert [node.host for node in cluster.state.leaving] == ["c3"]
    cluster.yarn.containers["c3"] = 0
    cluster.settle(20)
    assert len(cluster.hosts(CORE)) == 3


def test_a_copied_core_node_is_not_removed_while_a_block_is_corrupt_and_stays_if_that_does_not_end():
    cluster = four_core_nodes()
    figures = cluster.hdfs.figures
    cluster.spec["core"] = {"count": 3}
    cluster.turn()
    cluster.hdfs.figures = lambda live: structs.replace(figures(live), corrupt=1)
    cluster.settle(10)
    message = cluster.state.condition(ConditionType.RESIZING).message
    assert message.endswith("; c3: copied; waits for HDFS, which has missing or corrupt blocks")
    cluster.settle(60)
    assert len(cluster.hosts(CORE)) == 4
    assert not cluster.state.leaving
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)


def lost_while_it_leaves() -> SimulatedCluster:
    """Return a cluster whose leaving core node has lost its DataNode while blocks lack replicas."""
    cluster = four_core_nodes()
    figures, state = cluster.hdfs.figures, cluster.hdfs.state
    cluster.spec["core"] = {"count": 3}
    cluster.turn()
    cluster.hdfs.figures = lambda live: structs.replace(figures(live), under_replicated=5)
    cluster.hdfs.state = lambda host, live: DfsState.DEAD if host == "c3" else state(host, live)
    cluster.settle(10)
    return cluster


def test_a_core_node_whose_data_node_died_says_what_it_waits_for_and_stays_if_that_does_not_end():
    cluster = lost_while_it_leaves()
    message = cluster.state.condition(ConditionType.RESIZING).message
    assert message == "nodes leaving: 1; c3: its DataNode is dead; waits for HDFS, which has under-replicated blocks"
    cluster.settle(60)
    assert not cluster.state.leaving
    assert EventReason.DECOMMISSION_UNDONE in cluster.event_reasons
    assert blocked_shrink(cluster) == "4 core nodes, 3 wanted: HDFS has under-replicated blocks"


def test_a_core_node_whose_data_node_died_leaves_once_no_block_lacks_a_replica():
    cluster = lost_while_it_leaves()
    cluster.settle(60)
    figures = cluster.hdfs.figures
    cluster.hdfs.figures = lambda live: structs.replace(figures(live), under_replicated=0)
    cluster.settle(20)
    assert len(cluster.hosts(CORE)) == 3


def test_a_dead_core_node_is_not_removed_on_a_report_from_before_the_order():
    cluster = four_core_nodes(compute=False)
    state = cluster.hdfs.state
    cluster.hdfs.state = lambda host, live: DfsState.DEAD if host == "c3" else state(host, live)
    cluster.exchange()
    cluster.spec["core"] = {"count": 3}
    cluster.reconcile()
    assert [node.host for node in cluster.state.leaving] == ["c3"]
    assert not cluster.reconcile().delete
    cluster.settle(5)
    assert len(cluster.hosts(CORE)) == 3


def test_a_name_node_that_has_not_found_its_data_nodes_yet_undoes_no_decommission():
    cluster = four_core_nodes()
    cluster.yarn.containers["c3"] = 1
    cluster.spec["core"] = {"count": 3}
    cluster.turn()
    cluster.hdfs.started_s = cluster.now_s
    state = cluster.hdfs.state
    cluster.hdfs.state = lambda host, live: DfsState.NONE if host in {"c0", "c1"} else state(host, live)
    cluster.settle(5)
    assert [node.host for node in cluster.state.leaving] == ["c3"]


def test_a_new_leader_does_not_try_a_decommission_again_that_stalled():
    cluster = four_core_nodes()
    cluster.agent.refresh = lambda: None
    cluster.spec["core"] = {"count": 3}
    cluster.settle(70)
    cluster.forget()
    cluster.settle(2)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)
    assert not cluster.state.leaving
    cluster.generation += 1
    cluster.settle(2)
    assert [node.host for node in cluster.state.leaving] == ["c3"]


def test_a_running_cluster_says_that_its_network_policies_cannot_be_written():
    cluster = ready_cluster()
    refused = Problem(reason=Reason.WRITE_REFUSED, message="exceeded quota")
    state = planner.plan(dataclasses.replace(cluster.observation(), unreachable=refused)).state
    assert (state.phase, state.reason) == ("Degraded", Reason.WRITE_REFUSED)
    assert state.condition(ConditionType.DEGRADED).message == "exceeded quota"


def test_a_running_cluster_whose_spec_becomes_invalid_is_degraded_and_has_no_old_figures():
    cluster = ready_cluster()
    refusal = Refusal(reason=names.Reason.INVALID_SPEC, message="the master needs 1344 MiB")
    state = conditions.refused(cluster.state, refusal, generation=2, now_s=cluster.now_s)
    assert (state.phase, state.reason, state.hdfs) == ("Degraded", "InvalidSpec", None)
    assert state.condition(ConditionType.READY).status == "False"
    assert "until this is corrected: the master needs 1344 MiB" in state.condition(ConditionType.DEGRADED).message
    assert conditions.refused(state, refusal, generation=2, now_s=cluster.now_s + 60) == state


def test_a_cluster_that_was_never_admitted_stays_pending():
    refusal = Refusal(reason=names.Reason.INVALID_SPEC, message="the master needs 1344 MiB")
    state = conditions.refused(SimulatedCluster().state, refusal, generation=1, now_s=0.0)
    assert (state.phase, state.condition(ConditionType.READY)) == ("Pending", None)


def test_jobs_may_begin_on_a_degraded_cluster_whose_services_are_available():
    cluster = four_core_nodes()
    cluster.agent.refresh = lambda: None
    cluster.spec["core"] = {"count": 3}
    cluster.settle(70)
    assert cluster.state.phase == "Degraded"
    assert conditions.cluster_facts(cluster.observation(), cluster.state).is_ready
    cluster.hdfs.cluster_id = "CID-2"
    cluster.turn()
    assert not conditions.cluster_facts(cluster.observation(), cluster.state).is_ready


@pytest.mark.parametrize(
    ("diagnosis", "expected"), [("Gang", Reason.RESERVED_FOR_OTHERS), ("Insufficient", Reason.NO_ROOM)]
)
def test_resizing_says_whether_others_have_the_room(diagnosis, expected):
    cluster = ready_cluster()
    cluster.decide(5)
    cluster.reconcile()
    problem = Problem(reason=diagnosis, message="sparkapp/etl has 4 CPU on n1")
    plan = planner.plan(dataclasses.replace(cluster.observation(), diagnosis=problem))
    condition = plan.state.condition(ConditionType.RESIZING)
    assert (condition.status, condition.reason, condition.message) == ("True", expected, problem.message)


# Replacing


def test_a_lost_transient_node_is_replaced_under_another_name():
    cluster = ready_cluster(transient={"minimum": 2, "maximum": 8})
    cluster.lose_node("t0")
    cluster.reconcile()
    cluster.settle(5)
    assert cluster.hosts(TRANSIENT) == ["t1", "t2"]
    assert EventReason.NODE_REPLACED in cluster.event_reasons


def test_a_lost_core_node_is_created_again_under_its_name_once_the_old_pod_is_gone():
    cluster = ready_cluster()
    cluster.lose_node("c1")
    plan = cluster.reconcile()
    assert [pod.host for pod in plan.delete] == ["c1"]
    assert not plan.submit
    cluster.settle(5)
    assert cluster.hosts(CORE) == ["c0", "c1", "c2"]
    assert cluster.state.phase == "Ready"


@pytest.mark.parametrize("host", ["c1", "master"])
def test_a_node_whose_volume_is_on_a_lost_kubernetes_node_degrades_the_cluster(host):
    cluster = ready_cluster()
    cluster.lost_claims.add(host)
    cluster.lose_node(host)
    cluster.settle(3)
    assert cluster.condition(ConditionType.DEGRADED) == ("False", Reason.HEALTHY)
    cluster.settle(10)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.CORE_NODE_LOST)
    assert host not in cluster.pods
    cluster.lost_claims.clear()  # the claim was deleted, or the node is back
    cluster.settle(10)
    assert host in cluster.pods
    assert cluster.state.phase == "Ready"


def test_a_cluster_with_a_lost_core_node_still_grows():
    cluster = ready_cluster()
    cluster.lost_claims.add("c1")
    cluster.lose_node("c1")
    cluster.settle(10)
    assert sizing.for_policy(cluster.observation(), Plan(state=cluster.state, marks=cluster.marks)).growth == 8
    cluster.decide(5)
    cluster.settle(3)
    assert cluster.hosts(TRANSIENT) == ["t0", "t1"]


def test_a_lost_master_is_created_again_and_its_volume_is_not_formatted_again():
    cluster = ready_cluster()
    cluster.lose_node("master")
    cluster.settle(5)
    assert cluster.formats == [""]
    assert cluster.state.phase == "Ready"


def test_an_empty_volume_of_the_name_node_stops_everything():
    cluster = ready_cluster()
    cluster.decide(5)
    cluster.hdfs.cluster_id = ""
    cluster.lose_node("master")
    cluster.settle(5)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.NAME_VOLUME_EMPTY)
    assert cluster.formats == [""]


def test_figures_of_another_hdfs_are_ignored():
    cluster = ready_cluster()
    cluster.hdfs.cluster_id = "CID-2"
    cluster.turn()
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.FOREIGN_CLUSTER)
    assert (cluster.state.cluster_id, cluster.state.hdfs) == ("CID-1", None)


def test_pods_that_a_restored_status_does_not_have_are_adopted():
    cluster = ready_cluster()
    cluster.decide(5)
    cluster.settle(3)
    cluster.status = {}
    cluster.forget()
    cluster.settle(15)
    assert cluster.hosts(CORE) == ["c0", "c1", "c2"]
    assert cluster.hosts(TRANSIENT) == []
    assert cluster.state.next_transient == 2


def test_a_silent_master_is_reported_and_figures_are_dropped():
    cluster = ready_cluster()
    cluster.now_s += 100
    cluster.reconcile()
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.MASTER_NOT_REPORTING)
    assert cluster.state.load_percent is None


def test_figures_that_no_cluster_has_fit_the_status():
    cluster = ready_cluster()
    yarn = structs.replace(cluster.report.yarn, apps_running=2**62, apps_pending=2**62)
    cluster.report = structs.replace(cluster.report, yarn=yarn)
    cluster.reconcile()
    assert cluster.state.applications < 2**63


def stay_silent(cluster: SimulatedCluster, seconds: float) -> None:
    """Let time pass in which no report arrives."""
    for _ in range(round(seconds / 10)):
        cluster.now_s += 10
        for host in list(cluster.pods):
            cluster.vanish(host)
        cluster.reconcile()


def test_a_new_leader_changes_no_status_before_the_agent_could_report():
    cluster = ready_cluster()
    before = cluster.status
    cluster.forget()
    cluster.now_s += 60
    cluster.reconcile()
    stay_silent(cluster, 30)
    assert cluster.status == before
    stay_silent(cluster, 10)
    assert cluster.condition(ConditionType.READY) == ("False", Reason.STARTING)
    stay_silent(cluster, 30)
    assert cluster.condition(ConditionType.DEGRADED) == ("True", Reason.MASTER_NOT_REPORTING)


def test_a_new_leader_does_not_take_a_cluster_without_a_master_for_ready():
    cluster = ready_cluster()
    cluster.forget()
    del cluster.pods["master"]
    cluster.reconcile()
    assert cluster.state.phase == "Starting"


def test_a_silent_cluster_keeps_its_size_for_a_quarter_of_an_hour_and_then_shrinks_to_its_spec():
    cluster = ready_cluster(transient={"minimum": 1, "maximum": 8})
    cluster.decide(8)
    cluster.settle(3)
    stay_silent(cluster, 850)
    assert len(cluster.hosts(TRANSIENT)) == 5
    stay_silent(cluster, 60)
    assert [node.host for node in cluster.state.leaving] == ["t4", "t3"]
    stay_silent(cluster, 800)
    assert cluster.hosts(TRANSIENT) == ["t0"]
    assert len(cluster.hosts(CORE)) == 3


def test_a_cluster_that_reports_again_keeps_the_nodes_that_have_not_left():
    cluster = ready_cluster()
    cluster.decide(7)
    cluster.settle(3)
    cluster.yarn.containers |= {"t2": 1, "t3": 1}
    stay_silent(cluster, 910)
    assert [node.host for node in cluster.state.leaving] == ["t3", "t2"]
    cluster.exchange()
    cluster.decide(7)
    cluster.settle(3)
    assert cluster.hosts(TRANSIENT) == ["t0", "t1", "t2", "t3"]


def test_a_transient_node_that_vanished_while_no_operator_ran_does_not_get_its_name_again():
    cluster = ready_cluster(transient={"minimum": 2, "maximum": 8})
    del cluster.pods["t0"]
    cluster.forget()
    cluster.settle(5)
    assert cluster.hosts(TRANSIENT) == ["t1", "t2"]


# Rolling


def test_new_settings_roll_over_core_nodes_one_by_one_and_the_master_last():
    cluster = ready_cluster()
    cluster.digest, restarted = "second", []
    for _ in range(120):
        cluster.turn()
        assert len([pod for pod in cluster.pods.values() if pod.is_over]) <= 1
        restarted += [host for host, pod in cluster.pods.items() if pod.settings == "second" and host not in restarted]
    assert restarted == ["c0", "c1", "c2", "master"]
    assert cluster.state.settings == "second"


def test_transient_nodes_roll_by_replacement():
    cluster = ready_cluster(transient={"minimum": 2, "maximum": 8})
    cluster.digest = "second"
    cluster.settle(20)
    assert cluster.hosts(TRANSIENT) == ["t2", "t3"]


def test_a_rollout_does_not_replace_further_transient_nodes_while_new_ones_do_not_start():
    cluster = ready_cluster(transient={"minimum": 6, "maximum": 8}, resizing={"policy": "Static", "shrinkBy": 2})
    start = cluster.start
    cluster.start = lambda host: None if cluster.pods[host].settings == "broken" else start(host)
    cluster.digest = "broken"
    cluster.settle(60)
    settings = [pod.settings for pod in cluster.pods.values()]
    assert (settings.count("first"), settings.count("broken")) == (3 + 1 + 4, 2)
    cluster.digest = "mended"
    cluster.settle(120)
    assert {pod.settings for pod in cluster.pods.values()} == {"mended"}


def test_a_rollout_stops_at_the_first_node_that_does_not_start_and_continues_with_settings_that_work():
    cluster = ready_cluster()
    start = cluster.start
    cluster.start = lambda host: None if cluster.pods[host].settings == "broken" else start(host)
    cluster.digest = "broken"
    cluster.settle(60)
    settings = {host: pod.settings for host, pod in cluster.pods.items()}
    assert settings == {"master": "first", "c0": "broken", "c1": "first", "c2": "first"}
    assert cluster.state.settings == "first"
    cluster.digest = "mended"
    cluster.settle(100)
    assert {pod.settings for pod in cluster.pods.values()} == {"mended"}
    assert cluster.state.phase == "Ready"


def test_nothing_rolls_while_hdfs_lacks_replicas():
    cluster = ready_cluster()
    cluster.hdfs.replication = 9
    cluster.hdfs.write(cluster.up)
    cluster.digest = "second"
    cluster.settle(20)
    assert {pod.settings for pod in cluster.pods.values()} == {"first"}


def test_a_node_that_does_not_serve_is_restarted_at_once():
    cluster = ready_cluster()
    cluster.change("c1", is_ready=False)
    cluster.now_s += 100  # no report either
    cluster.digest = "second"
    assert [pod.host for pod in cluster.reconcile().delete] == ["c1"]


def without_node_managers(cluster: SimulatedCluster, *hosts: str) -> None:
    """Let NodeManagers restart whose DataNodes are live."""
    for host in hosts:
        cluster.change(host, is_ready=False)


def test_a_node_manager_that_restarts_takes_no_data_node_away_while_another_one_rolls():
    cluster = ready_cluster()
    cluster.digest = "second"
    assert [pod.host for pod in cluster.reconcile().delete] == ["c0"]
    without_node_managers(cluster, "c1")
    assert not cluster.reconcile().delete
    cluster.vanish("c0")
    cluster.reconcile()
    cluster.create("c0")
    cluster.change("c1", problem=CRASHING)
    assert not cluster.reconcile().delete
    cluster.start("c0")
    assert [pod.host for pod in cluster.reconcile().delete] == ["c1"]


def test_nodes_whose_node_managers_do_not_start_are_restarted_one_by_one():
    cluster = ready_cluster()
    without_node_managers(cluster, "c0", "c1", "c2")
    cluster.digest = "second"
    assert [pod.host for pod in cluster.reconcile().delete] == ["c0"]
    assert not cluster.reconcile().delete


def test_a_node_with_a_problem_is_restarted_though_hdfs_lacks_replicas():
    cluster = ready_cluster()
    hdfs = structs.replace(cluster.report.hdfs, under_replicated=1)
    cluster.report = structs.replace(cluster.report, hdfs=hdfs)
    without_node_managers(cluster, "c1")
    cluster.digest = "second"
    assert not cluster.reconcile().delete
    cluster.change("c1", problem=CRASHING)
    assert [pod.host for pod in cluster.reconcile().delete] == ["c1"]


def test_the_status_has_the_replication_of_the_spec():
    cluster = ready_cluster(hdfs={"replication": 1})
    cluster.spec["hdfs"] = {"replication": 3}
    cluster.reconcile()
    assert cluster.state.replication == 3


def test_the_default_replication_does_not_follow_a_cluster_that_grows():
    cluster = ready_cluster(core={"count": 2})
    cluster.spec["core"] = {"count": 4}
    cluster.settle(5)
    assert cluster.state.replication == 2


# The network


def probe_network(cluster: SimulatedCluster, probe: Reason | None) -> tuple[str, str]:
    """Plan with the result of a test of the network; return the condition."""
    plan = planner.plan(dataclasses.replace(cluster.observation(), probe=probe))
    cluster.status = model.to_status(plan.state)
    cluster.events += plan.events
    return cluster.condition(ConditionType.NETWORK_UNVERIFIED)


def test_the_network_is_unverified_until_a_connection_was_refused():
    cluster = ready_cluster()
    assert probe_network(cluster, None) == ("Unknown", Reason.CANNOT_TELL)
    assert probe_network(cluster, Reason.NOT_ENFORCED) == ("True", Reason.NOT_ENFORCED)
    assert EventReason.NETWORK_UNVERIFIED in cluster.event_reasons
    assert probe_network(cluster, Reason.ENFORCED) == ("False", Reason.ENFORCED)
    assert cluster.state.condition(ConditionType.NETWORK_UNVERIFIED).message == ""


def test_the_network_is_unverified_again_when_a_test_shows_nothing():
    cluster = ready_cluster()
    probe_network(cluster, Reason.ENFORCED)
    assert probe_network(cluster, Reason.CANNOT_TELL) == ("Unknown", Reason.CANNOT_TELL)
    assert "9898" in cluster.state.condition(ConditionType.NETWORK_UNVERIFIED).message
    assert not cluster.events


@pytest.mark.parametrize("probe", [Reason.ENFORCED, Reason.NOT_ENFORCED])
def test_a_new_leader_keeps_what_the_last_test_of_the_network_has_shown(probe):
    cluster = ready_cluster()
    before = probe_network(cluster, probe)
    cluster.forget()
    assert probe_network(cluster, None) == before
    assert not cluster.events


def test_a_cluster_without_network_policies_is_unverified():
    cluster = ready_cluster(networkPolicy="None")
    assert probe_network(cluster, Reason.ENFORCED) == ("True", Reason.DISABLED)


# Idle


def test_a_cluster_expires_when_nobody_used_it():
    cluster = ready_cluster(ttlSecondsAfterIdle=600)
    cluster.settle(30)
    assert cluster.state.phase == "Ready"
    cluster.settle(40)
    assert (cluster.state.phase, cluster.state.reason) == ("Expired", "TTLExpired")
    assert not planner.plan(cluster.observation()).submit


def test_an_application_keeps_a_cluster():
    cluster = ready_cluster(ttlSecondsAfterIdle=600)
    cluster.yarn.containers["c0"] = 1
    cluster.settle(100)
    assert cluster.state.phase == "Ready"


def test_a_new_process_gives_a_cluster_its_whole_time():
    cluster = ready_cluster(ttlSecondsAfterIdle=600)
    cluster.settle(40)
    cluster.forget()
    cluster.settle(40)
    assert cluster.state.phase == "Ready"
