"""Remove nodes without disturbing jobs, and never a replica that HDFS still needs. Pure.

A node that leaves is in the status first, then in the orders of the agent, which excludes it from YARN and HDFS.
Only once it is reported as drained, and the status says so, its pod is deleted. It leaves the status when the pod's
object is gone.

    staying ──begin──> Shrinking, Rolling, Unknown ──> Drained, TimedOut ──pod's object gone──> removed
       ^──────────undo───────────┘
"""

import dataclasses
import enum
from collections.abc import Iterable
from typing import Final

from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import EventReason, Reason, Role
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning.observation import FRESH_S, LATE_S, Observation, Plan, Stall, Step, figures
from boathouse_task.cluster_contract import AgentReport, DfsState, HdfsFigures, NodeFigures, YarnState

STALL_S: Final = 600.0
"""Time after which a decommission without progress counts as stalled."""
OVERTIME_S: Final = 30.0
"""How long after its deadline a node is removed that YARN did not decommission itself."""
SETTLED_S: Final = 15.0
"""How long after an order a node that YARN does not know counts as drained."""
RECOVERY_S: Final = 60.0
"""Nodes may not have registered yet with a ResourceManager that has been up for less."""
_STARTED_S: Final = 120.0
"""A NameNode that has been up for less may not have found yet its DataNodes, and what blocks lack replicas."""
_ROOM: Final = 1.2
"""Free space that other core nodes need, relative to what a leaving one uses."""
_OUT_OF_YARN: Final = frozenset({YarnState.DECOMMISSIONED, YarnState.LOST, YarnState.SHUTDOWN})
_OUT_OF_HDFS: Final = frozenset({DfsState.NONE, DfsState.DEAD})
_STEPS: Final = {
    DfsState.LIVE: Step.NOT_BEGUN,
    DfsState.STALE: Step.NOT_BEGUN,
    DfsState.DECOMMISSIONING: Step.COPYING,
    DfsState.DECOMMISSIONED: Step.COPIED,
    DfsState.NONE: Step.NO_DATA_NODE,
    DfsState.DEAD: Step.NO_DATA_NODE,
}
_STALLED: Final = {
    Step.COPIED: "its blocks are copied, but {left} blocks of HDFS have been missing or corrupt for "
    "{minutes:.0f} minutes",
    Step.NO_DATA_NODE: "it has no live DataNode, and {left} blocks of HDFS have had too few replicas for "
    "{minutes:.0f} minutes",
    Step.NOT_BEGUN: "HDFS has not begun its decommission for {minutes:.0f} minutes: see the log of the container "
    "refresh of the master",
    Step.COPYING: "{left} blocks found no other core node for {minutes:.0f} minutes: is the replication of some files "
    "more than the core nodes that would be left?",
}
_IN_SERVICE: Final = frozenset({YarnState.NONE, YarnState.NEW, YarnState.RUNNING, YarnState.UNHEALTHY})


class Leave(enum.StrEnum):
    """Why a node leaves, and how far it is."""

    SHRINKING = "Shrinking"
    ROLLING = "Rolling"
    UNKNOWN = "Unknown"
    DRAINED = "Drained"
    TIMED_OUT = "TimedOut"


_ENDED: Final = frozenset({Leave.DRAINED, Leave.TIMED_OUT})


def has_ended(node: wire.LeavingNode) -> bool:
    """Return whether a node is drained, so that only its pod is left to remove."""
    return node.reason in _ENDED


def places(state: model.ClusterState) -> int:
    """Return how many more nodes may leave at the same time."""
    return wire.MAX_LEAVING - len(state.leaving)


def begin(observation: Observation, draft: Plan, hosts: Iterable[str], reason: Leave) -> Plan:
    """Let nodes leave."""
    now_s, timeout_s = observation.now_s, observation.cluster.spec.resizing.drain_timeout_seconds
    deadlines_s = {Role.TRANSIENT: now_s + timeout_s}
    new = (
        wire.LeavingNode(host=host, since_s=now_s, deadline_s=deadlines_s.get(model.known_role(host)), reason=reason)
        for host in hosts
    )
    return draft.with_state(leaving=(*draft.state.leaving, *new))


# Choosing


def transient_candidates(observation: Observation, draft: Plan) -> list[str]:
    """Return the transient nodes that may leave, the one with the fewest containers first, then the newest."""
    report = observation.report_within(FRESH_S)
    if report is None or report.yarn is None:
        return []
    reported = figures(report)
    candidates = [host for host in draft.state.staying(Role.TRANSIENT) if reported[host].yarn in _IN_SERVICE]
    return sorted(candidates, key=lambda host: (reported[host].containers, -model.number_of(host)))


def core_candidate(observation: Observation, draft: Plan) -> str | Problem:
    """Return the core node that may leave now, the newest if HDFS is whole and others have room, or why none may."""
    report, state, why = observation.report_within(FRESH_S), draft.state, why_not_whole(observation)
    if any(model.role_of(host) is Role.CORE for host in state.leaving_hosts):
        why = "another core node leaves"
    elif is_barred(observation, draft):
        why = "a decommission was undone: see the events, and change the spec to retry it"
    if report is None or why:
        return Problem(reason=Reason.SHRINK_BLOCKED, message=why)
    reported, hosts = figures(report), state.staying(Role.CORE)
    live = {host: reported[host].free_bytes for host in hosts if reported[host].dfs is DfsState.LIVE}
    least, free_bytes, obstacles = _least_live(state), sum(live.values()), []
    for host in sorted(hosts, key=lambda host: (host in live, -model.number_of(host))):
        spare, others_bytes = len(live) - (host in live) - least, free_bytes - live.get(host, 0)
        obstacles.append(_obstacle(host, reported[host], spare, others_bytes))
        if not obstacles[-1]:
            return host
    return Problem(reason=Reason.SHRINK_BLOCKED, message=obstacles[0] if obstacles else "")


def _obstacle(host: str, node: NodeFigures, spare: int, others_bytes: int) -> str:
    """Return why a core node may not leave though HDFS is whole; empty if it may. It has no figure that often changes.

    `spare` are live core nodes beyond those that are needed, without this one; negative: so many are missing.
    `others_bytes` is the free space of the other live core nodes.
    """
    if node.dfs not in {DfsState.LIVE, *_OUT_OF_HDFS}:
        return f"the DataNode of {host} is not in service"
    if node.yarn not in _IN_SERVICE | {YarnState.LOST}:
        return f"the NodeManager of {host} is not in service"
    if spare < 0:
        return f"without {host} too few core nodes would be live: {-spare} more are needed"
    if others_bytes < _ROOM * node.used_bytes:
        return f"the other core nodes have no room for the blocks of {host}"
    return ""


def why_not_whole(observation: Observation) -> str:
    """Return why HDFS may lack replicas, by a report that is fresh enough to remove a node on it; empty if not."""
    hdfs = observation.hdfs_within(FRESH_S)
    if hdfs is None:
        return f"the NameNode has not been reported for {FRESH_S:.0f} s"
    if hdfs.safe_mode:
        return "the NameNode is in safe mode"
    if observation.now_s - hdfs.started_s < _STARTED_S:
        return f"the NameNode started less than {_STARTED_S:.0f} s ago"
    if hdfs.missing or hdfs.corrupt:
        return "HDFS has missing or corrupt blocks"
    return "HDFS has under-replicated blocks" if hdfs.under_replicated else ""


def _least_live(state: model.ClusterState) -> int:
    return max(state.replication, state.first_core_nodes)


def is_barred(observation: Observation, draft: Plan) -> bool:
    """Return whether a decommission stalled, and nothing changed since that could help."""
    return draft.marks.barred is not None and draft.marks.barred == _bar(observation, draft.state)


def remember(observation: Observation, draft: Plan) -> Plan:
    """Keep what the status says of a decommission that stalled, which a former leader has seen."""
    state, generation = observation.state, observation.cluster.generation
    is_known = state.reason == Reason.DECOMMISSION_STALLED and state.observed_generation == generation
    if draft.marks.barred is not None or not is_known:
        return draft
    return draft.with_marks(barred=_bar(observation, draft.state))


def _bar(observation: Observation, state: model.ClusterState) -> tuple[int, tuple[str, ...]]:
    return observation.cluster.generation, state.staying(Role.CORE)


# Going on


def advance(observation: Observation, draft: Plan) -> Plan:
    """Delete the pods of nodes that are drained, and remove those whose pods are gone."""
    for node in draft.state.leaving:
        ended = _ended(observation, node)
        if ended is None:
            continue
        if ended is Leave.TIMED_OUT and node.reason != ended:
            message = f"{node.host} still had containers after its drain timeout, which are lost"
            draft = draft.with_event(EventReason.DRAIN_TIMED_OUT, message, is_warning=True)
        if observation.is_absent(node.host):
            draft = draft.removed(node.host).with_event(EventReason.SHRANK, f"{node.host} has left")
            continue
        drained = dataclasses.replace(node, reason=ended)
        draft = draft.with_state(leaving=tuple(drained if other == node else other for other in draft.state.leaving))
        draft = draft.deleting(observation.pod(node.host))
    return draft


def _ended(observation: Observation, node: wire.LeavingNode) -> Leave | None:
    """Return how a node's drain has ended; None if it goes on."""
    if node.reason in _ENDED:
        return Leave(node.reason)
    if model.role_of(node.host) is Role.CORE:
        return Leave.DRAINED if _has_left_hdfs(observation, node) else None
    pod = observation.pod(node.host)
    if pod.is_over or pod.node is None if pod else node.host not in observation.taken:
        return Leave.DRAINED
    if node.deadline_s is not None and observation.now_s >= node.deadline_s + OVERTIME_S:
        return Leave.TIMED_OUT
    report = observation.report_within(FRESH_S)
    return Leave.DRAINED if report is not None and _has_left_yarn(observation, report, node) else None


def _has_left_yarn(observation: Observation, report: AgentReport, node: wire.LeavingNode) -> bool:
    node_figures = figures(report).get(node.host)
    if node_figures is not None and node_figures.yarn is not YarnState.NONE:
        return node_figures.yarn in _OUT_OF_YARN
    if report.yarn is None or report.yarn.up_s < RECOVERY_S or (node_figures is None and report.idle_nodes):
        return False
    return observation.is_excluded and observation.now_s - node.since_s >= SETTLED_S


def _has_left_hdfs(observation: Observation, node: wire.LeavingNode) -> bool:
    """Return whether no replica is on a core node alone, and YARN runs nothing on it."""
    report, hdfs = observation.report_within(FRESH_S), observation.hdfs_within(FRESH_S)
    if report is None or hdfs is None or hdfs.safe_mode or hdfs.missing or hdfs.corrupt:
        return False
    if observation.cluster.spec.compute and not _has_left_yarn(observation, report, node):
        return False
    dfs = figures(report)[node.host].dfs
    is_gone = dfs in _OUT_OF_HDFS and observation.is_excluded
    return dfs is DfsState.DECOMMISSIONED or (is_gone and not why_not_whole(observation))


# Undoing


def undo_stalled(observation: Observation, draft: Plan) -> Plan:
    """Take back the decommission of a core node that cannot end."""
    report = observation.report_within(FRESH_S)
    leaving = [node for node in draft.state.leaving if model.role_of(node.host) is Role.CORE and not has_ended(node)]
    if not leaving or report is None or report.hdfs is None:
        return draft.with_marks(stalls={})  # a time without reports is not one without progress
    reported, stalls = figures(report), {}
    for node in leaving:
        stall = _stall(observation, report.hdfs, reported[node.host], draft.marks.stalls.get(node.host))
        if stall is not None:
            stalls[node.host] = stall
        if stall is not None and observation.now_s - stall.since_s >= STALL_S:
            why = _STALLED[stall.step].format(left=stall.left, minutes=STALL_S / 60)
            draft = _undone(draft, node.host, why)
            if stall.step is not Step.NO_DATA_NODE:  # which leaves once HDFS is whole
                draft = draft.with_marks(barred=_bar(observation, draft.state))
        elif why := _too_few(observation, draft, report):
            draft = _undone(draft, node.host, why)
    return draft.with_marks(stalls=stalls)


def _stall(
    observation: Observation, hdfs: HdfsFigures, node_figures: NodeFigures, former: Stall | None
) -> Stall | None:
    """Return what a decommission has left, and since when that is no less; None for nothing."""
    step, lost = _STEPS[node_figures.dfs], hdfs.missing + hdfs.corrupt
    left = {Step.COPIED: lost, Step.NO_DATA_NODE: lost + hdfs.under_replicated}.get(step, node_figures.blocks_left)
    stall = Stall(step=step, left=left, since_s=observation.now_s)
    if stall.is_over:
        return None  # containers end by themselves, however late
    return stall if former is None or stall.replaces(former) else former


def awaited(observation: Observation, state: model.ClusterState) -> str:
    """Return what a core node waits for that has nothing to copy, with a separator before it; empty for none."""
    report = observation.report_within(LATE_S)
    if report is None:
        return ""
    reported = figures(report)
    for node in state.leaving:
        node_figures = reported[node.host]
        if has_ended(node) or model.role_of(node.host) is not Role.CORE:
            continue
        if node_figures.dfs is DfsState.DECOMMISSIONED:
            return f"; {node.host}: copied; waits for {_awaited(report, node_figures)}"
        if node_figures.dfs is DfsState.DEAD:
            return f"; {node.host}: its DataNode is dead; waits for {_awaited(report, node_figures)}"
    return ""


def _awaited(report: AgentReport, node_figures: NodeFigures) -> str:
    hdfs = report.hdfs
    if hdfs is None or hdfs.safe_mode:
        return "the NameNode"
    if hdfs.missing or hdfs.corrupt:
        return "HDFS, which has missing or corrupt blocks"
    if node_figures.dfs is DfsState.DEAD and hdfs.under_replicated:
        return "HDFS, which has under-replicated blocks"
    if node_figures.containers:
        return f"{node_figures.containers} containers"
    return "YARN, which keeps a node while running jobs need its map output"


def _too_few(observation: Observation, draft: Plan, report: AgentReport) -> str:
    if report.hdfs is None or report.hdfs.safe_mode or observation.now_s - report.hdfs.started_s < _STARTED_S:
        return ""
    reported, least = figures(report), _least_live(draft.state)
    hosts = draft.state.staying(Role.CORE)
    live = sum(reported[host].dfs is DfsState.LIVE for host in hosts)
    return "" if live >= least else f"only {live} other core nodes are live, and {least} are needed"


def _undone(draft: Plan, host: str, why: str) -> Plan:
    return draft.kept(host).with_event(EventReason.DECOMMISSION_UNDONE, f"{host} stays: {why}", is_warning=True)


def undoable(observation: Observation, draft: Plan, role: Role) -> list[str]:
    """Return the nodes that leave to shrink the cluster and could stay, the last to leave first."""
    return [
        node.host
        for node in reversed(draft.state.leaving)
        if node.reason == Leave.SHRINKING
        and model.role_of(node.host) is role
        and (pod := observation.pod(node.host)) is not None
        and not (pod.is_over or pod in draft.delete)
    ]
