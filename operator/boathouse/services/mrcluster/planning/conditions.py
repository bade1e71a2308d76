"""A cluster's phase, conditions (metav1.Condition), counts and figures, and its facts for other kinds. Pure."""

import dataclasses
from typing import Final

from boathouse.resources import names
from boathouse.resources.mrcluster import spec
from boathouse.resources.mrcluster import status as wire
from boathouse.resources.mrcluster.names import ConditionType, EventReason, Reason, Role
from boathouse.resources.mrcluster.status import SizeChange
from boathouse.services import hadoop
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import Problem
from boathouse.services.frame.status_codec import ConditionTable
from boathouse.services.hadoop import ClusterFacts
from boathouse.services.mrcluster import daemons, files, model
from boathouse.services.mrcluster.model import ClusterState, Names
from boathouse.services.mrcluster.planning import degradation, draining, membership, sizing
from boathouse.services.mrcluster.planning.degradation import Service
from boathouse.services.mrcluster.planning.observation import ABSENT, LATE_S, Draft, Observation, figures
from boathouse_policies.model import NodeName
from boathouse_task.cluster_contract import DfsState, YarnState

SIZES_EVERY_S: Final = 10.0
_RESERVED: Final = frozenset({"JobOrder", "Gang", "Patience"})
"""Reasons of the scheduler's diagnosis that name others who have the room."""
_NO_CONTROL: Final = (
    f"the operator cannot connect to the master's port {daemons.CONTROL_PORT} either, which the cluster's "
    "NetworkPolicies open to it: check the network between them, and policies for connections of "
    "the operator's namespace"
)
_TESTED: Final = frozenset({Reason.ENFORCED, Reason.NOT_ENFORCED})
_SERVING: Final = frozenset({"Ready", "Degraded"})
"""Phases in which jobs may begin if HDFS and YARN are available: a lost core node does not hold them up."""


def table(state: ClusterState, now_s: float) -> ConditionTable:
    """Return the conditions of a cluster, to be changed."""
    return ConditionTable(state.conditions, state.observed_generation, now_s, order=ConditionType)


def refused(state: ClusterState, refusal: Refusal, generation: int, now_s: float) -> ClusterState:
    """Return the state of an invalid resource; the cause may be corrected in another object.

    A cluster that has started keeps its pods, but the operator does not replace, resize or observe them.
    """
    state = dataclasses.replace(state, observed_generation=generation, reason=refusal.reason)
    conditions = table(state, now_s)
    conditions.set(ConditionType.ADMITTED, False, refusal.reason, refusal.message)
    if state.start_s is not None and not state.is_finished:
        message = f"the operator neither replaces nor resizes its nodes until this is corrected: {refusal.message}"
        conditions.set(ConditionType.READY, False, refusal.reason, message)
        conditions.set(ConditionType.DEGRADED, True, refusal.reason, message)
        state = dataclasses.replace(model.without_figures(state), phase="Degraded")
    return dataclasses.replace(state, conditions=conditions.conditions)


def expired(observation: Observation, draft: Draft) -> ClusterState:
    """Return the last state of a cluster that expired without use."""
    conditions = table(draft.state, observation.now_s)
    message = f"the cluster was not used for {observation.cluster.spec.ttl_seconds_after_idle} s"
    conditions.set(ConditionType.READY, False, Reason.TTL_EXPIRED, message)
    conditions.set(ConditionType.IDLE, True, Reason.TTL_EXPIRED, message)
    return dataclasses.replace(draft.state, reason=str(Reason.TTL_EXPIRED), conditions=conditions.conditions)


def in_progress(observation: Observation, draft: Draft) -> Draft:
    """Return the draft with the phase, conditions, counts and figures of a cluster that lives."""
    draft = _counted(observation, _reported(observation, draft))
    hdfs, yarn = degradation.hdfs(observation, draft), degradation.yarn(observation, draft)
    problem = degradation.degradation(observation, draft)
    is_ready = hdfs.is_available and (yarn.is_available or not observation.cluster.spec.compute)
    if is_ready and draft.state.ready_s is None:
        draft = draft.with_state(ready_s=observation.now_s, last_active_s=observation.now_s)
    draft = draft.with_state(
        phase=_phase(observation, draft, problem, is_ready=is_ready), reason=str(problem.reason) if problem else ""
    )
    conditions = table(draft.state, observation.now_s)
    conditions.set(ConditionType.ADMITTED, True, names.Reason.ADMITTED, f"in queue {draft.state.queue}")
    _set_services(conditions, hdfs, yarn, problem, is_ready=is_ready)
    _set_scheduled(observation, draft, conditions)
    _set_resizing(observation, draft, conditions)
    _set_settings(observation, conditions)
    _set_network(observation, conditions)
    if draft.state.ready_s is not None and observation.report is not None:
        is_idle = draft.marks.idle_s is not None
        conditions.set(ConditionType.IDLE, is_idle, Reason.NO_APPLICATIONS if is_idle else Reason.IN_USE, "")
    draft = _with_events(observation, draft)
    return draft.with_state(conditions=conditions.conditions)


def _phase(observation: Observation, draft: Draft, problem: Problem | None, *, is_ready: bool) -> wire.Phase:
    if not observation.nodes and draft.state.ready_s is None:
        return "Pending"
    if problem is not None:
        return "Degraded"
    master = observation.pod(model.MASTER)
    return "Ready" if is_ready and master is not None and not master.is_over else "Starting"


def _set_services(
    conditions: ConditionTable, hdfs: Service, yarn: Service, problem: Problem | None, *, is_ready: bool
) -> None:
    lacking = yarn if hdfs.is_available else hdfs
    ready = Service(is_available=True, reason=Reason.AVAILABLE) if is_ready else lacking
    for condition_type, service in (
        (ConditionType.READY, ready),
        (ConditionType.HDFS_AVAILABLE, hdfs),
        (ConditionType.YARN_AVAILABLE, yarn),
    ):
        conditions.set(condition_type, service.is_available, service.reason, service.message)
    reason, message = (problem.reason, problem.message) if problem else (Reason.HEALTHY, "")
    conditions.set(ConditionType.DEGRADED, problem is not None, reason, message)


def _set_scheduled(observation: Observation, draft: Draft, conditions: ConditionTable) -> None:
    waiting, why = list(draft.marks.unplaced_s), observation.diagnosis
    if not waiting:
        conditions.set(ConditionType.SCHEDULED, True, names.Reason.ALL_TASKS_PLACED, "")
    elif why is not None:
        conditions.set(ConditionType.SCHEDULED, False, why.reason, why.message)
    else:
        message = f"{len(waiting)} nodes are not evaluated by the scheduler yet"
        conditions.set(ConditionType.SCHEDULED, False, names.Reason.PENDING_EVALUATION, message)


def _set_resizing(observation: Observation, draft: Draft, conditions: ConditionTable) -> None:
    state, marks, why = draft.state, draft.marks, observation.diagnosis
    was_withdrawn = marks.withdrawn_s is not None and observation.now_s - marks.withdrawn_s < sizing.NO_ROOM_S
    pending = sum(counts.pending for counts in (state.core, state.transient) if counts)
    if (marks.unplaced_s and why is not None) or was_withdrawn:
        is_reserved = why is not None and why.reason in _RESERVED
        message = why.message if why is not None else "transient nodes found no room and were withdrawn"
        conditions.set(
            ConditionType.RESIZING, True, Reason.RESERVED_FOR_OTHERS if is_reserved else Reason.NO_ROOM, message
        )
    elif state.leaving:
        awaited = draining.awaited(observation, state)
        message = f"nodes leaving: {len(state.leaving)}{awaited}{_failed_orders(observation)}"
        conditions.set(ConditionType.RESIZING, True, Reason.DRAINING, message)
    elif blocked := _blocked_shrink(observation, draft):
        conditions.set(ConditionType.RESIZING, True, blocked.reason, blocked.message)
    elif pending:
        message = degradation.with_problem(observation, f"{pending} nodes are not ready yet", Role.CORE, Role.TRANSIENT)
        conditions.set(ConditionType.RESIZING, True, Reason.GROWING, message)
    else:
        conditions.set(ConditionType.RESIZING, False, Reason.AS_WANTED, "")


def _blocked_shrink(observation: Observation, draft: Draft) -> Problem | None:
    """Return why a core node stays that is not wanted; None if all are wanted, or one may leave."""
    staying, wanted = len(membership.staying(draft.state, Role.CORE)), membership.wanted(draft.state, Role.CORE)
    candidate = draining.core_candidate(observation, draft) if staying > wanted else None
    if not isinstance(candidate, Problem):
        return None
    return dataclasses.replace(candidate, message=f"{staying} core nodes, {wanted} wanted: {candidate.message}")


def _failed_orders(observation: Observation) -> str:
    """Return what the agent says if HDFS and YARN have not read which nodes leave; empty for nothing."""
    report = observation.report_within(LATE_S)
    return f"; the agent: {report.error}" if report is not None and report.error and not report.refreshed else ""


def _set_settings(observation: Observation, conditions: ConditionTable) -> None:
    keys = observation.overridden
    reason = Reason.CLOSED_SETTINGS if keys else Reason.NOT_OVERRIDDEN
    message = spec.ignored_settings(keys) if keys else ""
    conditions.set(ConditionType.SETTINGS_OVERRIDDEN, bool(keys), reason, message)
    old = [pod.host for pod in observation.nodes if pod.settings != observation.digest]
    message = f"{len(old)} of {len(observation.nodes)} nodes have other settings" if old else ""
    conditions.set(ConditionType.ROLLED_OUT, not old, Reason.ROLLING_OUT if old else Reason.ROLLED_OUT, message)


def _set_network(observation: Observation, conditions: ConditionTable) -> None:
    """Set what the last test of the network has shown; it holds until the next one, also for a new leader."""
    unverified = ConditionType.NETWORK_UNVERIFIED
    condition = observation.state.condition(unverified)
    if observation.cluster.spec.network_policy == "None":
        message = (
            "spec.networkPolicy is None: a client that reaches the cluster's ports can run code as any Hadoop user"
        )
        conditions.set(unverified, True, Reason.DISABLED, message)
    elif observation.probe is None and condition is not None and condition.reason in _TESTED:
        conditions.set(unverified, condition.status == "True", condition.reason, condition.message)
    elif observation.probe is None:
        conditions.set(unverified, None, Reason.CANNOT_TELL, "no connection was tried yet, or none can be")
    elif observation.probe is Reason.CANNOT_TELL:
        conditions.set(unverified, None, Reason.CANNOT_TELL, _NO_CONTROL)
    elif observation.probe is Reason.NOT_ENFORCED:
        message = (
            "a connection went through that no NetworkPolicy allows: this cluster's network plugin does not enforce "
            "them, and a client that reaches the ports can run code as any Hadoop user"
        )
        conditions.set(unverified, True, Reason.NOT_ENFORCED, message)
    else:
        conditions.set(unverified, False, Reason.ENFORCED, "")


def _with_events(observation: Observation, draft: Draft) -> Draft:
    """Return the draft with the events of conditions that became true."""
    state = observation.state
    if observation.overridden and not state.holds(ConditionType.SETTINGS_OVERRIDDEN):
        keys = ", ".join(observation.overridden)
        draft = draft.with_event(EventReason.SETTINGS_OVERRIDDEN, f"ignored settings: {keys}", is_warning=True)
    if observation.probe is Reason.NOT_ENFORCED and not state.holds(ConditionType.NETWORK_UNVERIFIED):
        draft = draft.with_event(
            EventReason.NETWORK_UNVERIFIED, "this cluster does not enforce NetworkPolicies", is_warning=True
        )
    return draft


# Counts and figures


def _counted(observation: Observation, draft: Draft) -> Draft:
    core, transient = _counts(observation, draft, Role.CORE), _counts(observation, draft, Role.TRANSIENT)
    draft = draft.with_state(core=core, transient=transient)
    change = SizeChange(time_s=observation.now_s, core=core.ready, transient=transient.ready)
    sizes = draft.state.sizes
    if sizes and (sizes[-1].core, sizes[-1].transient) == (change.core, change.transient):
        return draft
    if sizes and observation.now_s - sizes[-1].time_s < SIZES_EVERY_S:
        sizes, change = sizes[:-1], dataclasses.replace(change, time_s=sizes[-1].time_s)
    return draft.with_state(sizes=(*sizes, change)[-wire.MAX_SIZES :])


def _counts(observation: Observation, draft: Draft, role: Role) -> wire.NodeCounts:
    hosts, report = membership.staying_hosts(draft.state, role), observation.report_within(LATE_S)
    if report is None:
        ready = sum(pod is not None and pod.is_ready for pod in map(observation.pod, hosts))
    else:
        reported = figures(report)
        nodes = [reported.get(host, ABSENT) for host in hosts]
        if role is Role.CORE:
            ready = sum(node.dfs is DfsState.LIVE for node in nodes)
        else:
            ready = min(len(hosts), report.idle_nodes + sum(node.yarn is YarnState.RUNNING for node in nodes))
    return wire.NodeCounts(
        wanted=membership.wanted(draft.state, role),
        ready=ready,
        pending=len(hosts) - ready,
        leaving=len(membership.numbers(draft.state, role)) - len(hosts),
    )


def _reported(observation: Observation, draft: Draft) -> Draft:
    report = observation.report_within(LATE_S)
    draft = draft.with_state(addresses=_addresses(observation))
    if report is None and observation.report is None and draft.silence_s(observation.now_s) <= LATE_S:
        return draft  # a new leader keeps the figures of the status until it may have a report
    if report is None:
        return dataclasses.replace(draft, state=model.without_figures(draft.state))
    yarn, hdfs = report.yarn, report.hdfs
    running, pending = sizing.tasks(yarn) if yarn else (0, 0)
    return draft.with_state(
        load_percent=sizing.load_percent(observation, draft, report),
        slots=sizing.slots(observation, draft, report) if yarn else None,
        containers=wire.Containers(running=running, pending=pending) if yarn else None,
        applications=min(yarn.apps_running + yarn.apps_pending, sizing.MOST_TASKS) if yarn else None,
        hdfs=wire.HdfsUsage(
            capacity_bytes=hdfs.capacity_bytes,
            used_bytes=hdfs.used_bytes,
            files=hdfs.files,
            missing_blocks=hdfs.missing,
            under_replicated_blocks=hdfs.under_replicated,
            live_data_nodes=degradation.live_data_nodes(report),
        )
        if hdfs
        else None,
    )


def _addresses(observation: Observation) -> wire.Addresses:
    master = model.Names(observation.cluster).fqdn(model.MASTER)
    compute = observation.cluster.spec.compute
    return wire.Addresses(
        hdfs=f"hdfs://{master}:{hadoop.NAME_NODE_PORT}",
        webHDFS=f"http://{master}:{hadoop.WEB_HDFS_PORT}",
        resource_manager=f"http://{master}:{daemons.RESOURCE_MANAGER_HTTP_PORT}" if compute else None,
        job_history=f"http://{master}:{daemons.HISTORY_HTTP_PORT}" if compute else None,
    )


def cluster_facts(observation: Observation, state: ClusterState) -> ClusterFacts:
    """Return the facts of a cluster in a state.

    The settings for clients are those that all nodes have: while nodes are restarted, the former ones.
    """
    cluster, spec = observation.cluster, observation.cluster.spec
    names = Names(cluster)
    secrets = (*cluster.defaults.image_pull_secrets, *(secret.name for secret in spec.image_pull_secrets or ()))
    return ClusterFacts(
        uid=cluster.uid,
        namespace=cluster.namespace,
        name=cluster.name,
        queue=cluster.queue,
        phase=state.phase,
        is_ready=state.phase in _SERVING and state.holds(ConditionType.READY),
        has_compute=spec.compute,
        domain=names.fqdn(model.MASTER).partition(".")[2],
        image=cluster.image,
        classpath=spec.classpath,
        java_home=spec.java_home,
        settings=names.config_map(state.settings or observation.digest),
        master=model.MASTER,
        image_pull_policy=spec.image_pull_policy,
        image_pull_secrets=tuple(dict.fromkeys(secrets)),
        user_id=files.user_ids(cluster)[0],
        hosts={pod.host: NodeName(pod.node) for pod in observation.nodes if pod.node is not None and not pod.is_over},
    )
