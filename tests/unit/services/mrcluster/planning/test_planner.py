"""Lives of clusters, step by step, beside a model of HDFS and YARN."""

import dataclasses

import pytest
from msgspec import structs

from boathouse.resources import names
from boathouse.resources.mrcluster.names import ConditionType, EventReason, Reason, Role
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster import directory_entry
from boathouse.services.mrcluster.planning import conditions, load, planner
from boathouse.services.mrcluster.planning.observation import ClaimFacts, Draft
from boathouse.services.mrcluster.state import cluster_state
from boathouse_task.cluster_contract import DfsState, YarnState
from tests.unit.services.mrcluster.planning.world import World

CORE, TRANSIENT = Role.CORE, Role.TRANSIENT


def ready(**spec) -> World:
    world = World(**spec)
    world.settle(20)
    assert world.state.phase == "Ready", world.state.conditions
    return world


def with_four_core_nodes(**spec) -> World:
    """A cluster that had three at first, so that one may leave."""
    world = ready(**spec)
    world.spec["core"] = {"count": 4}
    world.settle(20)
    return world


def reasons(world: World) -> set[str]:
    return {event.reason for event in world.events}


def why(world: World, condition: ConditionType) -> tuple[str, str]:
    found = world.state.condition(condition)
    return found.status, found.reason


# Coming up


def test_a_new_cluster_submits_its_master_and_core_nodes_in_order():
    plan = World().reconcile()
    assert [wanted.host for wanted in plan.submit] == ["master", "c0", "c1", "c2"]
    assert list(plan.ensure) == ["master", "c0", "c1", "c2"]


def test_a_cluster_becomes_ready_and_records_what_holds_for_life():
    state = ready().state
    assert (state.cluster_id, state.first_core_nodes, state.replication) == ("CID-1", 3, 3)
    assert (state.core.ready, state.core.pending, state.settings) == (3, 0, "first")


def test_a_cluster_is_not_ready_before_all_first_core_nodes_are_live():
    world = World()
    world.reconcile()
    for host in ("master", "c0", "c1"):
        world.create(host)
        world.start(host)
    world.exchange()
    world.reconcile()
    assert why(world, ConditionType.HDFS_AVAILABLE) == ("False", Reason.DATA_NODES_MISSING)
    assert world.state.phase == "Starting"


def test_a_cluster_is_not_ready_before_the_node_managers_of_all_first_core_nodes_run():
    world = World()
    state = world.yarn.state
    world.yarn.state = lambda host, up: state(host, up) if host != "c2" else YarnState.NONE
    world.settle(20)
    assert why(world, ConditionType.READY) == ("False", Reason.NODE_MANAGERS_MISSING)
    message = world.state.condition(ConditionType.READY).message
    assert message == "2 of 3 core nodes have a NodeManager that runs"
    world.yarn.state = state
    world.turn()
    assert world.state.phase == "Ready"
    world.yarn.state = lambda host, up: state(host, up) if host == "c0" else YarnState.NONE
    world.turn()
    assert world.state.phase == "Ready"  # later one is enough


def test_conditions_say_why_a_pod_does_not_start():
    world = World()
    world.reconcile()
    world.create("master")
    world.change("master", problem=Problem(reason="ImagePullFailed", message="not found"))
    world.reconcile()
    for condition in (ConditionType.READY, ConditionType.HDFS_AVAILABLE, ConditionType.YARN_AVAILABLE):
        assert world.state.condition(condition).message.endswith("; master: not found (ImagePullFailed)")


def test_planning_again_without_news_changes_nothing():
    world = ready()
    before = world.status
    plan = world.reconcile()
    assert world.status == before
    assert (plan.delete, list(plan.submit), plan.events) == ((), [], ())


def test_a_cluster_is_not_ready_without_a_node_manager_on_a_core_node():
    world = ready()
    world.yarn.state = lambda _host, _up: YarnState.NONE
    world.turn()
    assert why(world, ConditionType.YARN_AVAILABLE) == ("False", Reason.NODE_MANAGERS_MISSING)
    assert why(world, ConditionType.READY) == ("False", Reason.NODE_MANAGERS_MISSING)


def test_a_cluster_is_not_ready_while_the_name_node_is_in_safe_mode():
    world = ready()
    world.report = structs.replace(world.report, hdfs=structs.replace(world.report.hdfs, safe_mode=True))
    world.reconcile()
    assert why(world, ConditionType.HDFS_AVAILABLE) == ("False", Reason.SAFE_MODE)
    assert world.state.condition(ConditionType.READY).message == "the NameNode is in safe mode"


def test_the_name_node_says_why_it_is_in_safe_mode():
    world = ready()
    hdfs = structs.replace(world.report.hdfs, safe_mode=True, safe_mode_text="Resources are\x1b low")
    world.report = structs.replace(world.report, hdfs=hdfs)
    world.reconcile()
    expected = "the NameNode is in safe mode: Resources are  low"
    assert world.state.condition(ConditionType.READY).message == expected


def test_node_managers_with_full_disks_are_counted():
    world = ready()
    world.yarn.state = lambda host, _up: YarnState.UNHEALTHY if host != "c0" else YarnState.NONE
    world.turn()
    expected = "0 of 3 core nodes have a NodeManager that runs; 2 are unhealthy, as with disks that are nearly full"
    assert world.state.condition(ConditionType.READY).message == expected


def test_blocks_without_a_replica_degrade_a_cluster():
    world = ready()
    world.hdfs.write({"c0"})
    world.hdfs.disks["c0"].clear()
    world.turn()
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.MISSING_BLOCKS)
    assert why(world, ConditionType.READY) == ("False", Reason.MISSING_BLOCKS)


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
    world = ready()
    world.report = structs.replace(world.report, hdfs=structs.replace(world.report.hdfs, version=version))
    world.reconcile()
    assert why(world, ConditionType.DEGRADED) == expected
    assert why(world, ConditionType.READY) == ("True", Reason.AVAILABLE)


def with_error(world: World, error: str) -> None:
    """Reconcile a report with an error of the agent."""
    world.exchange()
    world.report = structs.replace(world.report, error=error)
    world.reconcile()


def test_an_error_of_the_agent_that_persists_degrades_a_cluster_until_it_is_gone():
    world, error = ready(), "NameNode: PUT /webhdfs/v1/mr-history: status 403"
    for _ in range(12):
        with_error(world, error)
        assert why(world, ConditionType.DEGRADED) == ("False", Reason.HEALTHY)
        world.now_s += 5
    with_error(world, error)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.AGENT_FAILING)
    assert error in world.state.condition(ConditionType.DEGRADED).message
    assert why(world, ConditionType.READY) == ("True", Reason.AVAILABLE)
    assert directory_entry.of(world.observation(), world.state).is_ready
    world.forget()  # a new leader
    with_error(world, error)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.AGENT_FAILING)
    with_error(world, "")
    assert world.state.phase == "Ready"


@pytest.mark.parametrize("fields", [{"error": ""}, {"yarn": None}, {"hdfs": None}])
def test_short_errors_of_the_agent_and_those_of_a_daemon_that_is_away_do_not(fields):
    world = ready()
    for second in range(0, 200, 5):
        world.exchange()
        world.report = structs.replace(world.report, **({"error": "status 404"} | (fields if second % 30 == 0 else {})))
        world.reconcile()
        assert why(world, ConditionType.DEGRADED)[1] != Reason.AGENT_FAILING
        world.now_s += 5


STORAGE = {"compute": False, "transient": {}, "resizing": {"policy": "Static"}}


def test_a_cluster_for_storage_alone_is_ready_with_hdfs_and_follows_its_spec():
    world = ready(**STORAGE, core={"count": 4})
    assert why(world, ConditionType.YARN_AVAILABLE) == ("False", Reason.NO_COMPUTE)
    assert (world.state.load_percent, world.state.slots, world.state.addresses.resource_manager) == (None, None, None)
    world.spec["core"] = {"count": 5}
    world.settle(20)
    world.hdfs.disks["c4"] |= {0}
    world.hdfs.blocks = 1
    world.settle(3)
    world.spec["core"] = {"count": 4}
    world.settle(40)
    assert world.hosts(CORE) == ["c0", "c1", "c2", "c3"]
    assert not world.hdfs.missing({"c0", "c1", "c2", "c3"})
    world.digest = "second"
    world.settle(80)
    assert world.state.settings == "second"


CRASHING = Problem(reason="CrashLoopBackOff", message="the container checkpoint ended with exit code 1")


def test_a_container_of_the_master_that_keeps_failing_degrades_a_ready_cluster():
    world = ready()
    world.change("master", problem=CRASHING)
    world.turn()
    assert why(world, ConditionType.DEGRADED) == ("False", Reason.HEALTHY)
    world.settle(6)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.MASTER_CONTAINER_FAILING)
    message = world.state.condition(ConditionType.DEGRADED).message
    assert message == "master: the container checkpoint ended with exit code 1 (CrashLoopBackOff)"
    assert why(world, ConditionType.READY) == ("True", Reason.AVAILABLE)
    world.forget()  # a new leader
    world.turn()
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.MASTER_CONTAINER_FAILING)
    world.change("master", problem=None)
    world.settle(5)  # it runs between two failures
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.MASTER_CONTAINER_FAILING)
    world.settle(2)
    assert why(world, ConditionType.DEGRADED) == ("False", Reason.HEALTHY)


def test_a_container_of_the_master_that_failed_once_does_not_degrade_a_cluster():
    world = ready()
    world.change("master", problem=CRASHING)
    world.settle(2)
    world.change("master", problem=None)
    for _ in range(15):
        world.turn()
        assert why(world, ConditionType.DEGRADED) == ("False", Reason.HEALTHY)


# Growing and shrinking


def test_a_decision_adds_nodes_once():
    world = ready()
    world.decide(5)
    world.settle(3)
    assert world.hosts(TRANSIENT) == ["t0", "t1"]
    assert world.state.next_transient == 2
    assert EventReason.GREW in reasons(world)


def test_the_size_says_why():
    world = ready()
    world.decide(5)
    world.reconcile()
    assert world.state.size.reason == "by the test"


def test_a_decision_beyond_the_maximum_is_cut():
    world = ready(transient={"maximum": 1, "minimum": 0})
    world.decide(50)
    world.settle(3)
    assert world.hosts(TRANSIENT) == ["t0"]


def test_shrinking_drains_idle_nodes_first_and_waits_for_containers():
    world = ready()
    world.decide(6)
    world.settle(3)
    world.yarn.containers["t2"] = 1
    world.decide(3)
    world.turn()
    assert [node.host for node in world.state.leaving] == ["t1", "t0"]
    world.settle(5)
    assert world.hosts(TRANSIENT) == ["t2"]  # it has a container
    world.yarn.containers.clear()
    world.settle(5)
    assert world.hosts(TRANSIENT) == []


def test_a_node_that_does_not_drain_is_removed_after_its_timeout():
    world = ready()
    world.decide(4)
    world.settle(3)
    world.yarn.containers["t0"] = 1
    world.decide(3)
    world.settle(30)
    assert world.hosts(TRANSIENT) == ["t0"]
    world.settle(6)
    assert world.hosts(TRANSIENT) == []
    assert EventReason.DRAIN_TIMED_OUT in reasons(world)


def test_a_drain_is_undone_before_a_new_node_is_added():
    world = ready()
    world.decide(4)
    world.settle(3)
    world.yarn.containers["t0"] = 1
    world.decide(3)
    world.turn()
    world.decide(4)
    world.settle(3)
    assert world.hosts(TRANSIENT) == ["t0"]
    assert world.state.next_transient == 1
    assert not world.yarn.excluded


def test_no_node_leaves_without_a_fresh_report():
    world = ready()
    world.decide(5)
    world.settle(3)
    world.now_s += 20
    world.target = None
    world.decide(3)
    world.reconcile()
    assert not world.state.leaving


def test_a_transient_node_without_room_is_withdrawn_and_its_number_burnt():
    world = ready()
    world.decide(4)
    for _ in range(14):
        world.now_s += 10
        world.exchange()
        world.reconcile()
    assert world.state.wanted_transient == ()
    assert world.state.next_transient == 1
    assert why(world, ConditionType.RESIZING) == ("True", Reason.NO_ROOM)


def test_more_core_nodes_come_by_spec_and_leave_again_without_losing_a_block():
    world = ready()
    for _ in range(9):
        world.hdfs.write(world.up)
    world.spec["core"] = {"count": 5}
    world.settle(20)
    assert len(world.hosts(CORE)) == 5
    world.hdfs.disks["c4"] |= {0, 1, 2}
    world.spec["core"] = {"count": 3}
    world.settle(60)
    assert world.hosts(CORE) == ["c0", "c1", "c2"]
    assert not world.hdfs.missing({"c0", "c1", "c2"})


def test_ggdp_adds_core_nodes_up_to_its_maximum():
    world = ready(resizing={"policy": "GGDP"}, core={"count": 3, "maximum": 4}, transient={})
    world.decide(9, stores=True)
    world.settle(10)
    assert world.hosts(CORE) == ["c0", "c1", "c2", "c3"]


def test_core_nodes_leave_one_after_the_other():
    world = ready(core={"count": 3}, hdfs={"replication": 1})
    world.spec["core"] = {"count": 5}
    world.settle(20)
    world.hdfs.disks["c4"] = {0}
    world.hdfs.blocks = 1
    world.spec["core"] = {"count": 3}
    world.turn()
    assert len(world.state.leaving) == 1


def test_no_core_node_leaves_while_replicas_are_missing():
    world = with_four_core_nodes()
    world.hdfs.write({"c0", "c1"})
    world.hdfs.disks["c1"].clear()
    world.hdfs.replication = 9
    world.spec["core"] = {"count": 3}
    world.settle(10)
    assert len(world.hosts(CORE)) == 4
    assert not world.state.leaving
    assert blocked_shrink(world) == "4 core nodes, 3 wanted: HDFS has under-replicated blocks"


def blocked_shrink(world: World) -> str:
    condition = world.state.condition(ConditionType.RESIZING)
    assert (condition.status, condition.reason) == ("True", Reason.SHRINK_BLOCKED)
    return condition.message


def test_a_core_node_stays_and_says_why_while_the_others_have_no_room_for_its_blocks():
    world = with_four_core_nodes()
    nodes = [structs.replace(node, free_bytes=100 << 20, used_bytes=400 << 20) for node in world.report.nodes]
    world.report = structs.replace(world.report, nodes=nodes)
    world.spec["core"] = {"count": 3}
    world.reconcile()
    assert blocked_shrink(world) == "4 core nodes, 3 wanted: the other core nodes have no room for the blocks of c3"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (DfsState.STALE, "the DataNode of c1 is not in service"),
        (DfsState.DEAD, "without c1 too few core nodes would be live: 1 more are needed"),
    ],
)
def test_a_core_node_stays_and_says_why_while_too_few_others_are_live(state, expected):
    world = with_four_core_nodes()
    lost = {"c0", "c1"}
    nodes = [structs.replace(node, dfs=state) if node.host in lost else node for node in world.report.nodes]
    world.report = structs.replace(world.report, nodes=nodes)
    world.spec["core"] = {"count": 3}
    world.reconcile()
    assert blocked_shrink(world) == f"4 core nodes, 3 wanted: {expected}"


def test_a_decommission_that_cannot_end_is_undone_reported_and_not_tried_again():
    world = with_four_core_nodes()
    world.spec["core"] = {"count": 3}
    world.turn()
    world.hdfs.replication = 4
    for _ in range(2):
        world.hdfs.write(world.up | {"c3"})
    world.hdfs.disks["c3"] |= {0, 1}
    world.settle(80)
    assert len(world.hosts(CORE)) == 4
    assert not world.state.leaving
    assert EventReason.DECOMMISSION_UNDONE in reasons(world)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)


def test_a_decommission_that_hdfs_does_not_begin_is_undone_and_reported():
    world = with_four_core_nodes()
    world.agent.refresh = lambda: None  # the commands of the image fail
    world.spec["core"] = {"count": 3}
    world.turn()
    world.report = structs.replace(world.report, error="refresh of hdfs ended with status 1", refreshed=False)
    world.reconcile()
    message = world.state.condition(ConditionType.RESIZING).message
    assert message == "nodes leaving: 1; the agent: refresh of hdfs ended with status 1"
    world.settle(70)
    assert len(world.hosts(CORE)) == 4
    assert not world.state.leaving
    assert EventReason.DECOMMISSION_UNDONE in reasons(world)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)


def test_a_copied_core_node_says_for_which_containers_it_waits_and_leaves_when_they_have_ended():
    world = with_four_core_nodes()
    world.yarn.containers["c3"] = 2
    world.spec["core"] = {"count": 3}
    world.settle(50)
    message = world.state.condition(ConditionType.RESIZING).message
    assert message == "nodes leaving: 1; c3: copied; waits for 2 containers"
    world.settle(100)
    assert [node.host for node in world.state.leaving] == ["c3"]
    world.yarn.containers["c3"] = 0
    world.settle(20)
    assert len(world.hosts(CORE)) == 3


def test_a_copied_core_node_is_not_removed_while_a_block_is_corrupt_and_stays_if_that_does_not_end():
    world = with_four_core_nodes()
    figures = world.hdfs.figures
    world.spec["core"] = {"count": 3}
    world.turn()
    world.hdfs.figures = lambda live: structs.replace(figures(live), corrupt=1)
    world.settle(10)
    message = world.state.condition(ConditionType.RESIZING).message
    assert message.endswith("; c3: copied; waits for HDFS, which has missing or corrupt blocks")
    world.settle(60)
    assert len(world.hosts(CORE)) == 4
    assert not world.state.leaving
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)


def lost_while_it_leaves() -> World:
    """A cluster whose leaving core node has lost its DataNode while blocks lack replicas."""
    world = with_four_core_nodes()
    figures, state = world.hdfs.figures, world.hdfs.state
    world.spec["core"] = {"count": 3}
    world.turn()
    world.hdfs.figures = lambda live: structs.replace(figures(live), under_replicated=5)
    world.hdfs.state = lambda host, live: DfsState.DEAD if host == "c3" else state(host, live)
    world.settle(10)
    return world


def test_a_core_node_whose_data_node_died_says_what_it_waits_for_and_stays_if_that_does_not_end():
    world = lost_while_it_leaves()
    message = world.state.condition(ConditionType.RESIZING).message
    assert message == "nodes leaving: 1; c3: its DataNode is dead; waits for HDFS, which has under-replicated blocks"
    world.settle(60)
    assert not world.state.leaving
    assert EventReason.DECOMMISSION_UNDONE in reasons(world)
    assert blocked_shrink(world) == "4 core nodes, 3 wanted: HDFS has under-replicated blocks"


def test_a_core_node_whose_data_node_died_leaves_once_no_block_lacks_a_replica():
    world = lost_while_it_leaves()
    world.settle(60)
    figures = world.hdfs.figures
    world.hdfs.figures = lambda live: structs.replace(figures(live), under_replicated=0)
    world.settle(20)
    assert len(world.hosts(CORE)) == 3


def test_a_dead_core_node_is_not_removed_on_a_report_from_before_the_order():
    world = with_four_core_nodes(compute=False)
    state = world.hdfs.state
    world.hdfs.state = lambda host, live: DfsState.DEAD if host == "c3" else state(host, live)
    world.exchange()
    world.spec["core"] = {"count": 3}
    world.reconcile()
    assert [node.host for node in world.state.leaving] == ["c3"]
    assert not world.reconcile().delete
    world.settle(5)
    assert len(world.hosts(CORE)) == 3


def test_a_name_node_that_has_not_found_its_data_nodes_yet_undoes_no_decommission():
    world = with_four_core_nodes()
    world.yarn.containers["c3"] = 1
    world.spec["core"] = {"count": 3}
    world.turn()
    world.hdfs.started_s = world.now_s
    state = world.hdfs.state
    world.hdfs.state = lambda host, live: DfsState.NONE if host in {"c0", "c1"} else state(host, live)
    world.settle(5)
    assert [node.host for node in world.state.leaving] == ["c3"]


def test_a_new_leader_does_not_try_a_decommission_again_that_stalled():
    world = with_four_core_nodes()
    world.agent.refresh = lambda: None
    world.spec["core"] = {"count": 3}
    world.settle(70)
    world.forget()
    world.settle(2)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.DECOMMISSION_STALLED)
    assert not world.state.leaving
    world.generation += 1
    world.settle(2)
    assert [node.host for node in world.state.leaving] == ["c3"]


def test_a_running_cluster_says_that_its_network_policies_cannot_be_made_those_of_the_spec():
    world = ready()
    refused = Problem(reason=Reason.WRITE_REFUSED, message="exceeded quota")
    state = planner.plan(dataclasses.replace(world.observation(), unreachable=refused)).state
    assert (state.phase, state.reason) == ("Degraded", Reason.WRITE_REFUSED)
    assert state.condition(ConditionType.DEGRADED).message == "exceeded quota"


def test_a_running_cluster_whose_spec_becomes_invalid_is_degraded_and_has_no_old_figures():
    world = ready()
    refusal = Refusal(reason=names.Reason.INVALID_SPEC, message="the master needs 1344 MiB")
    state = conditions.refused(world.state, refusal, generation=2, now_s=world.now_s)
    assert (state.phase, state.reason, state.hdfs) == ("Degraded", "InvalidSpec", None)
    assert state.condition(ConditionType.READY).status == "False"
    assert "until this is corrected: the master needs 1344 MiB" in state.condition(ConditionType.DEGRADED).message
    assert conditions.refused(state, refusal, generation=2, now_s=world.now_s + 60) == state


def test_a_cluster_that_was_never_admitted_stays_pending():
    refusal = Refusal(reason=names.Reason.INVALID_SPEC, message="the master needs 1344 MiB")
    state = conditions.refused(World().state, refusal, generation=1, now_s=0.0)
    assert (state.phase, state.condition(ConditionType.READY)) == ("Pending", None)


def test_jobs_may_begin_on_a_degraded_cluster_whose_services_are_available():
    world = with_four_core_nodes()
    world.agent.refresh = lambda: None
    world.spec["core"] = {"count": 3}
    world.settle(70)
    assert world.state.phase == "Degraded"
    assert directory_entry.of(world.observation(), world.state).is_ready
    world.hdfs.cluster_id = "CID-2"
    world.turn()
    assert not directory_entry.of(world.observation(), world.state).is_ready


@pytest.mark.parametrize(
    ("diagnosis", "expected"), [("Gang", Reason.RESERVED_FOR_OTHERS), ("Insufficient", Reason.NO_ROOM)]
)
def test_resizing_says_whether_others_have_the_room(diagnosis, expected):
    world = ready()
    world.decide(5)
    world.reconcile()
    problem = Problem(reason=diagnosis, message="sparkapp/etl has 4 CPU on n1")
    plan = planner.plan(dataclasses.replace(world.observation(), diagnosis=problem))
    condition = plan.state.condition(ConditionType.RESIZING)
    assert (condition.status, condition.reason, condition.message) == ("True", expected, problem.message)


# Replacing


def test_a_lost_transient_node_is_replaced_under_another_name():
    world = ready(transient={"minimum": 2, "maximum": 8})
    world.lose_node("t0")
    world.reconcile()
    world.settle(5)
    assert world.hosts(TRANSIENT) == ["t1", "t2"]
    assert EventReason.NODE_REPLACED in reasons(world)


def test_a_lost_core_node_comes_again_under_its_name_once_the_old_pod_is_gone():
    world = ready()
    world.lose_node("c1")
    plan = world.reconcile()
    assert [pod.host for pod in plan.delete] == ["c1"]
    assert not plan.submit
    world.settle(5)
    assert world.hosts(CORE) == ["c0", "c1", "c2"]
    assert world.state.phase == "Ready"


ON_A_LOST_NODE = ClaimFacts(is_bound=True, is_tied=True, node_exists=False)


@pytest.mark.parametrize("host", ["c1", "master"])
def test_a_node_whose_volume_is_on_a_lost_kubernetes_node_degrades_the_cluster(host):
    world = ready()
    world.claims[host] = ON_A_LOST_NODE
    world.lose_node(host)
    world.settle(3)
    assert why(world, ConditionType.DEGRADED) == ("False", Reason.HEALTHY)
    world.settle(10)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.CORE_NODE_LOST)
    assert host not in world.pods
    world.claims.clear()  # the claim was deleted, or the node is back
    world.settle(10)
    assert host in world.pods
    assert world.state.phase == "Ready"


def test_a_cluster_with_a_lost_core_node_still_grows():
    world = ready()
    world.claims["c1"] = ON_A_LOST_NODE
    world.lose_node("c1")
    world.settle(10)
    assert load.cluster(world.observation(), Draft(state=world.state, marks=world.marks)).growth == 8
    world.decide(5)
    world.settle(3)
    assert world.hosts(TRANSIENT) == ["t0", "t1"]


def test_a_master_that_is_lost_comes_again_and_its_volume_is_not_formatted_again():
    world = ready()
    world.lose_node("master")
    world.settle(5)
    assert world.formats == [""]
    assert world.state.phase == "Ready"


def test_an_empty_volume_of_the_name_node_stops_everything():
    world = ready()
    world.decide(5)
    world.hdfs.cluster_id = ""
    world.lose_node("master")
    world.settle(5)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.NAME_VOLUME_EMPTY)
    assert world.formats == [""]


def test_figures_of_another_hdfs_are_ignored():
    world = ready()
    world.hdfs.cluster_id = "CID-2"
    world.turn()
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.FOREIGN_CLUSTER)
    assert (world.state.cluster_id, world.state.hdfs) == ("CID-1", None)


def test_pods_that_a_restored_status_does_not_have_are_taken_in():
    world = ready()
    world.decide(5)
    world.settle(3)
    world.status = {}
    world.forget()
    world.settle(15)
    assert world.hosts(CORE) == ["c0", "c1", "c2"]
    assert world.hosts(TRANSIENT) == []
    assert world.state.next_transient == 2


def test_a_silent_master_is_reported_and_figures_are_dropped():
    world = ready()
    world.now_s += 100
    world.reconcile()
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.MASTER_NOT_REPORTING)
    assert world.state.load_percent is None


def test_figures_that_no_cluster_has_fit_the_status():
    world = ready()
    yarn = structs.replace(world.report.yarn, apps_running=2**62, apps_pending=2**62)
    world.report = structs.replace(world.report, yarn=yarn)
    world.reconcile()
    assert world.state.applications < 2**63


def stay_silent(world: World, seconds: float) -> None:
    """Let time pass in which no report arrives."""
    for _ in range(round(seconds / 10)):
        world.now_s += 10
        for host in list(world.pods):
            world.vanish(host)
        world.reconcile()


def test_a_new_leader_changes_no_status_before_the_agent_could_report():
    world = ready()
    before = world.status
    world.forget()
    world.now_s += 60
    world.reconcile()
    stay_silent(world, 30)
    assert world.status == before
    stay_silent(world, 10)
    assert why(world, ConditionType.READY) == ("False", Reason.STARTING)
    stay_silent(world, 30)
    assert why(world, ConditionType.DEGRADED) == ("True", Reason.MASTER_NOT_REPORTING)


def test_a_new_leader_does_not_take_a_cluster_without_a_master_for_ready():
    world = ready()
    world.forget()
    del world.pods["master"]
    world.reconcile()
    assert world.state.phase == "Starting"


def test_a_silent_cluster_keeps_its_size_for_a_quarter_of_an_hour_and_then_gives_back_what_its_policy_took():
    world = ready(transient={"minimum": 1, "maximum": 8})
    world.decide(8)
    world.settle(3)
    stay_silent(world, 850)
    assert len(world.hosts(TRANSIENT)) == 5
    stay_silent(world, 60)
    assert [node.host for node in world.state.leaving] == ["t4", "t3"]
    stay_silent(world, 800)
    assert world.hosts(TRANSIENT) == ["t0"]
    assert len(world.hosts(CORE)) == 3


def test_a_cluster_that_reports_again_keeps_the_nodes_that_have_not_left():
    world = ready()
    world.decide(7)
    world.settle(3)
    world.yarn.containers |= {"t2": 1, "t3": 1}
    stay_silent(world, 910)
    assert [node.host for node in world.state.leaving] == ["t3", "t2"]
    world.exchange()
    world.decide(7)
    world.settle(3)
    assert world.hosts(TRANSIENT) == ["t0", "t1", "t2", "t3"]


def test_a_transient_node_that_vanished_while_no_operator_ran_does_not_get_its_name_again():
    world = ready(transient={"minimum": 2, "maximum": 8})
    del world.pods["t0"]
    world.forget()
    world.settle(5)
    assert world.hosts(TRANSIENT) == ["t1", "t2"]


# Rolling


def test_new_settings_roll_over_core_nodes_one_by_one_and_the_master_last():
    world = ready()
    world.digest, restarted = "second", []
    for _ in range(120):
        world.turn()
        assert len([pod for pod in world.pods.values() if pod.is_over]) <= 1
        restarted += [host for host, pod in world.pods.items() if pod.settings == "second" and host not in restarted]
    assert restarted == ["c0", "c1", "c2", "master"]
    assert world.state.settings == "second"


def test_transient_nodes_roll_by_replacement():
    world = ready(transient={"minimum": 2, "maximum": 8})
    world.digest = "second"
    world.settle(20)
    assert world.hosts(TRANSIENT) == ["t2", "t3"]


def test_a_rollout_does_not_replace_further_transient_nodes_while_new_ones_do_not_start():
    world = ready(transient={"minimum": 6, "maximum": 8}, resizing={"policy": "Static", "shrinkBy": 2})
    start = world.start
    world.start = lambda host: None if world.pods[host].settings == "broken" else start(host)
    world.digest = "broken"
    world.settle(60)
    settings = [pod.settings for pod in world.pods.values()]
    assert (settings.count("first"), settings.count("broken")) == (3 + 1 + 4, 2)
    world.digest = "mended"
    world.settle(120)
    assert {pod.settings for pod in world.pods.values()} == {"mended"}


def test_a_rollout_stops_at_the_first_node_that_does_not_start_and_goes_on_with_settings_that_work():
    world = ready()
    start = world.start
    world.start = lambda host: None if world.pods[host].settings == "broken" else start(host)
    world.digest = "broken"
    world.settle(60)
    settings = {host: pod.settings for host, pod in world.pods.items()}
    assert settings == {"master": "first", "c0": "broken", "c1": "first", "c2": "first"}
    assert world.state.settings == "first"
    world.digest = "mended"
    world.settle(100)
    assert {pod.settings for pod in world.pods.values()} == {"mended"}
    assert world.state.phase == "Ready"


def test_nothing_rolls_while_hdfs_lacks_replicas():
    world = ready()
    world.hdfs.replication = 9
    world.hdfs.write(world.up)
    world.digest = "second"
    world.settle(20)
    assert {pod.settings for pod in world.pods.values()} == {"first"}


def test_a_node_that_does_not_serve_is_restarted_at_once():
    world = ready()
    world.change("c1", is_ready=False)
    world.now_s += 100  # no report either
    world.digest = "second"
    assert [pod.host for pod in world.reconcile().delete] == ["c1"]


def without_node_managers(world: World, *hosts: str) -> None:
    """Let NodeManagers restart whose DataNodes are live."""
    for host in hosts:
        world.change(host, is_ready=False)


def test_a_node_manager_that_restarts_takes_no_data_node_away_while_another_one_rolls():
    world = ready()
    world.digest = "second"
    assert [pod.host for pod in world.reconcile().delete] == ["c0"]
    without_node_managers(world, "c1")
    assert not world.reconcile().delete
    world.vanish("c0")
    world.reconcile()
    world.create("c0")
    world.change("c1", problem=CRASHING)
    assert not world.reconcile().delete
    world.start("c0")
    assert [pod.host for pod in world.reconcile().delete] == ["c1"]


def test_nodes_whose_node_managers_do_not_start_are_restarted_one_by_one():
    world = ready()
    without_node_managers(world, "c0", "c1", "c2")
    world.digest = "second"
    assert [pod.host for pod in world.reconcile().delete] == ["c0"]
    assert not world.reconcile().delete


def test_a_node_with_a_problem_is_restarted_though_hdfs_lacks_replicas():
    world = ready()
    hdfs = structs.replace(world.report.hdfs, under_replicated=1)
    world.report = structs.replace(world.report, hdfs=hdfs)
    without_node_managers(world, "c1")
    world.digest = "second"
    assert not world.reconcile().delete
    world.change("c1", problem=CRASHING)
    assert [pod.host for pod in world.reconcile().delete] == ["c1"]


def test_the_status_has_the_replication_of_the_spec():
    world = ready(hdfs={"replication": 1})
    world.spec["hdfs"] = {"replication": 3}
    world.reconcile()
    assert world.state.replication == 3


def test_the_default_replication_does_not_follow_a_cluster_that_grows():
    world = ready(core={"count": 2})
    world.spec["core"] = {"count": 4}
    world.settle(5)
    assert world.state.replication == 2


# The network


def network(world: World, probe: Reason | None) -> tuple[str, str]:
    """Plan with the result of a test of the network; return the condition."""
    plan = planner.plan(dataclasses.replace(world.observation(), probe=probe))
    world.status = cluster_state.to_status(plan.state)
    world.events += plan.events
    return why(world, ConditionType.NETWORK_UNVERIFIED)


def test_the_network_is_unverified_until_a_connection_was_refused():
    world = ready()
    assert network(world, None) == ("Unknown", Reason.CANNOT_TELL)
    assert network(world, Reason.NOT_ENFORCED) == ("True", Reason.NOT_ENFORCED)
    assert EventReason.NETWORK_UNVERIFIED in reasons(world)
    assert network(world, Reason.ENFORCED) == ("False", Reason.ENFORCED)


def test_the_network_is_unverified_again_when_a_test_shows_nothing():
    world = ready()
    network(world, Reason.ENFORCED)
    assert network(world, Reason.CANNOT_TELL) == ("Unknown", Reason.CANNOT_TELL)
    assert "9898" in world.state.condition(ConditionType.NETWORK_UNVERIFIED).message
    assert not world.events


@pytest.mark.parametrize("probe", [Reason.ENFORCED, Reason.NOT_ENFORCED])
def test_a_new_leader_keeps_what_the_last_test_of_the_network_has_shown(probe):
    world = ready()
    before = network(world, probe)
    world.forget()
    assert network(world, None) == before
    assert not world.events


def test_a_cluster_without_network_policies_is_unverified():
    world = ready(networkPolicy="None")
    assert network(world, Reason.ENFORCED) == ("True", Reason.DISABLED)


# Idle


def test_a_cluster_expires_when_nobody_used_it():
    world = ready(ttlSecondsAfterIdle=600)
    world.settle(30)
    assert world.state.phase == "Ready"
    world.settle(40)
    assert world.state.phase == "Expired"
    assert not planner.plan(world.observation()).submit


def test_an_application_keeps_a_cluster():
    world = ready(ttlSecondsAfterIdle=600)
    world.yarn.containers["c0"] = 1
    world.settle(100)
    assert world.state.phase == "Ready"


def test_a_new_process_gives_a_cluster_its_whole_time():
    world = ready(ttlSecondsAfterIdle=600)
    world.settle(40)
    world.forget()
    world.settle(40)
    assert world.state.phase == "Ready"
