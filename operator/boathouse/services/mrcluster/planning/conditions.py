"""A cluster's phase, conditions (metav1.Condition), counts and figures, and its facts for other kinds. Pure."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final

from boathouse.resources import names
from boathouse.resources.mrcluster import spec, status as wire
from boathouse.resources.mrcluster.names import ConditionType, EventReason, Reason, Role
from boathouse.services import hadoop
from boathouse.services.frame import status_codec
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster import daemons, files, model
from boathouse.services.mrcluster.planning import degradation, draining, sizing
from boathouse.services.mrcluster.planning.observation import LATE_S, Observation, Plan, figures
from boathouse_policies.model import NodeName
from boathouse_task.cluster_contract import DfsState

SIZES_EVERY_S: Final = 10.0
_RESERVED: Final = frozenset({"JobOrder", "Gang", "Patience"})
"""Reasons of the scheduler's diagnosis that name others who have the room."""
_PROBED: Final = {
    Reason.CANNOT_TELL: (
        None,
        Reason.CANNOT_TELL,
        (
            f"the operator cannot connect to the master's port {daemons.CONTROL_PORT} either, which the cluster's "
            "NetworkPolicies open to it: check the network between them, and policies for connections of "
            "the operator's namespace"
        ),
    ),
    Reason.NOT_ENFORCED: (
        True,
        Reason.NOT_ENFORCED,
        (
            "a connection went through that no NetworkPolicy allows: this cluster's network plugin does not enforce "
            "them, and a client that reaches the ports can run code as any Hadoop user"
        ),
    ),
    Reason.ENFORCED: (False, Reason.ENFORCED, ""),
}
"""Whether the network is unverified, reason and message, by what the test has shown."""
_Change = tuple[ConditionType, bool | None, str, str]
_SERVING: Final = frozenset({"Ready", "Degraded"})
"""Phases in which jobs may begin if HDFS and YARN are available: a lost core node does not hold them up."""


def _changed(state: model.ClusterState, now_s: float, changes: Iterable[_Change], **fields: Any) -> model.ClusterState:
    return status_codec.with_conditions(state, now_s, ConditionType, changes, **fields)


def refused(state: model.ClusterState, refusal: Refusal, generation: int, now_s: float) -> model.ClusterState:
    """Return the state of an invalid resource; the cause may be corrected in another object.

    A cluster that has started keeps its pods, but the operator does not replace, resize or observe them.
    """
    changes: list[_Change] = [(ConditionType.ADMITTED, False, refusal.reason, refusal.message)]
    if state.start_s is not None and not state.is_finished:
        message = f"the operator neither replaces nor resizes its nodes until this is corrected: {refusal.message}"
        changes.append((ConditionType.READY, False, refusal.reason, message))
        changes.append((ConditionType.DEGRADED, True, refusal.reason, message))
        state = dataclasses.replace(model.without_figures(state), phase="Degraded")
    return _changed(state, now_s, changes, observed_generation=generation, reason=refusal.reason)


def expired(observation: Observation, draft: Plan) -> model.ClusterState:
    """Return the last state of a cluster that expired without use."""
    reason, ttl_s = Reason.TTL_EXPIRED, observation.cluster.spec.ttl_seconds_after_idle
    message = f"the cluster was not used for {ttl_s} s"
    changes = ((ConditionType.READY, False, reason, message), (ConditionType.IDLE, True, reason, message))
    return _changed(draft.state, observation.now_s, changes, reason=str(reason))


def in_progress(observation: Observation, draft: Plan) -> Plan:
    """Return the draft with the phase, conditions, counts and figures of a cluster that lives."""
    draft, now_s = _counted(observation, _reported(observation, draft)), observation.now_s
    hdfs, yarn = degradation.hdfs(observation, draft), degradation.yarn(observation, draft)
    problem = degradation.degradation(observation, draft)
    is_ready = hdfs.is_available and (yarn.is_available or not observation.cluster.spec.compute)
    if is_ready and draft.state.ready_s is None:
        draft = draft.with_state(ready_s=now_s, last_active_s=now_s)
    ready = degradation.Service(Reason.AVAILABLE) if is_ready else yarn if hdfs.is_available else hdfs
    degraded = (problem.reason, problem.message) if problem else (Reason.HEALTHY, "")
    changes: list[_Change] = [
        (ConditionType.ADMITTED, True, names.Reason.ADMITTED, f"in queue {draft.state.queue}"),
        (ConditionType.READY, is_ready, *ready),
        (ConditionType.HDFS_AVAILABLE, hdfs.is_available, *hdfs),
        (ConditionType.YARN_AVAILABLE, yarn.is_available, *yarn),
        (ConditionType.DEGRADED, problem is not None, *degraded),
        _scheduled(observation, draft),
        _resizing(observation, draft),
        *_settings(observation),
        (ConditionType.NETWORK_UNVERIFIED, *_network(observation)),
    ]
    if draft.state.ready_s is not None and observation.report is not None:
        is_idle = draft.marks.idle_s is not None
        changes.append((ConditionType.IDLE, is_idle, Reason.NO_APPLICATIONS if is_idle else Reason.IN_USE, ""))
    phase, reason = _phase(observation, draft, problem, is_ready=is_ready), str(problem.reason) if problem else ""
    draft = _with_events(observation, draft)
    return dataclasses.replace(draft, state=_changed(draft.state, now_s, changes, phase=phase, reason=reason))


def _phase(observation: Observation, draft: Plan, problem: Problem | None, *, is_ready: bool) -> wire.Phase:
    if not observation.nodes and draft.state.ready_s is None:
        return "Pending"
    if problem is not None:
        return "Degraded"
    master = observation.pod(model.MASTER)
    return "Ready" if is_ready and master is not None and not master.is_over else "Starting"


def _scheduled(observation: Observation, draft: Plan) -> _Change:
    waiting, why = len(draft.marks.unplaced_s), observation.diagnosis
    if not waiting:
        return ConditionType.SCHEDULED, True, names.Reason.ALL_TASKS_PLACED, ""
    if why is not None:
        return ConditionType.SCHEDULED, False, why.reason, why.message
    message = f"{waiting} nodes are not evaluated by the scheduler yet"
    return ConditionType.SCHEDULED, False, names.Reason.PENDING_EVALUATION, message


def _resizing(observation: Observation, draft: Plan) -> _Change:
    state, marks, why = draft.state, draft.marks, observation.diagnosis
    was_withdrawn = marks.withdrawn_s is not None and observation.now_s - marks.withdrawn_s < sizing.NO_ROOM_S
    pending = sum(counts.pending for counts in (state.core, state.transient) if counts)
    if (marks.unplaced_s and why is not None) or was_withdrawn:
        is_reserved = why is not None and why.reason in _RESERVED
        message = why.message if why is not None else "transient nodes found no room and were withdrawn"
        return ConditionType.RESIZING, True, Reason.RESERVED_FOR_OTHERS if is_reserved else Reason.NO_ROOM, message
    if state.leaving:
        awaited = draining.awaited(observation, state)
        message = f"nodes leaving: {len(state.leaving)}{awaited}{_failed_orders(observation)}"
        return ConditionType.RESIZING, True, Reason.DRAINING, message
    if blocked := _blocked_shrink(observation, draft):
        return ConditionType.RESIZING, True, blocked.reason, blocked.message
    if pending:
        message = degradation.with_problem(observation, f"{pending} nodes are not ready yet", Role.CORE, Role.TRANSIENT)
        return ConditionType.RESIZING, True, Reason.GROWING, message
    return ConditionType.RESIZING, False, Reason.AS_WANTED, ""


def _blocked_shrink(observation: Observation, draft: Plan) -> Problem | None:
    """Return why a core node stays that is not wanted; None if all are wanted, or one may leave."""
    staying, wanted = len(draft.state.staying(Role.CORE)), draft.state.wanted(Role.CORE)
    candidate = draining.core_candidate(observation, draft) if staying > wanted else None
    if not isinstance(candidate, Problem):
        return None
    return dataclasses.replace(candidate, message=f"{staying} core nodes, {wanted} wanted: {candidate.message}")


def _failed_orders(observation: Observation) -> str:
    """Return what the agent says if HDFS and YARN have not read which nodes leave; empty for nothing."""
    report = observation.report_within(LATE_S)
    return f"; the agent: {report.error}" if report is not None and report.error and not report.refreshed else ""


def _settings(observation: Observation) -> Iterator[_Change]:
    keys = observation.rendered.overridden
    reason, message = (Reason.CLOSED_SETTINGS, spec.ignored_settings(keys)) if keys else (Reason.NOT_OVERRIDDEN, "")
    yield ConditionType.SETTINGS_OVERRIDDEN, bool(keys), reason, message
    old = sum(pod.settings != observation.rendered.digest for pod in observation.nodes)
    message = f"{old} of {len(observation.nodes)} nodes have other settings" if old else ""
    yield ConditionType.ROLLED_OUT, not old, Reason.ROLLING_OUT if old else Reason.ROLLED_OUT, message


def _network(observation: Observation) -> tuple[bool | None, str, str]:
    """Return what the last test of the network has shown; it holds until the next one, also for a new leader."""
    condition, probe = observation.state.condition(ConditionType.NETWORK_UNVERIFIED), observation.probe
    if observation.cluster.spec.network_policy == "None":
        message = (
            "spec.networkPolicy is None: a client that reaches the cluster's ports can run code as any Hadoop user"
        )
        return True, Reason.DISABLED, message
    if probe is None and condition is not None and condition.reason in {Reason.ENFORCED, Reason.NOT_ENFORCED}:
        return condition.status == "True", condition.reason, condition.message
    if probe is None:
        return None, Reason.CANNOT_TELL, "no connection was tried yet, or none can be"
    return _PROBED[probe]


def _with_events(observation: Observation, draft: Plan) -> Plan:
    state = observation.state
    if observation.rendered.overridden and not state.holds(ConditionType.SETTINGS_OVERRIDDEN):
        message = f"ignored settings: {', '.join(observation.rendered.overridden)}"
        draft = draft.with_event(EventReason.SETTINGS_OVERRIDDEN, message, is_warning=True)
    if observation.probe is Reason.NOT_ENFORCED and not state.holds(ConditionType.NETWORK_UNVERIFIED):
        message = "this cluster does not enforce NetworkPolicies"
        draft = draft.with_event(EventReason.NETWORK_UNVERIFIED, message, is_warning=True)
    return draft


# Counts and figures


def _counted(observation: Observation, draft: Plan) -> Plan:
    core, transient = _counts(observation, draft, Role.CORE), _counts(observation, draft, Role.TRANSIENT)
    draft = draft.with_state(core=core, transient=transient)
    change = wire.SizeChange(time_s=observation.now_s, core=core.ready, transient=transient.ready)
    sizes = draft.state.sizes
    if sizes and (sizes[-1].core, sizes[-1].transient) == (change.core, change.transient):
        return draft
    if sizes and observation.now_s - sizes[-1].time_s < SIZES_EVERY_S:
        sizes, change = sizes[:-1], dataclasses.replace(change, time_s=sizes[-1].time_s)
    return draft.with_state(sizes=(*sizes, change)[-wire.MAX_SIZES :])


def _counts(observation: Observation, draft: Plan, role: Role) -> wire.NodeCounts:
    hosts, report = draft.state.staying(role), observation.report_within(LATE_S)
    if report is None:
        ready = sum(pod is not None and pod.is_ready for pod in map(observation.pod, hosts))
    elif role is Role.CORE:
        reported = figures(report)
        ready = sum(reported[host].dfs is DfsState.LIVE for host in hosts)
    else:
        ready = sizing.registered(report, hosts, report.idle_nodes)
    return wire.NodeCounts(
        wanted=draft.state.wanted(role),
        ready=ready,
        pending=len(hosts) - ready,
        leaving=len(draft.state.numbers(role)) - len(hosts),
    )


def _reported(observation: Observation, draft: Plan) -> Plan:
    report, compute = observation.report_within(LATE_S), observation.cluster.spec.compute
    master = observation.cluster.fqdn(model.MASTER)
    addresses = wire.Addresses(
        hdfs=f"hdfs://{master}:{hadoop.NAME_NODE_PORT}",
        webHDFS=f"http://{master}:{hadoop.WEB_HDFS_PORT}",
        resource_manager=f"http://{master}:{daemons.RESOURCE_MANAGER_HTTP_PORT}" if compute else None,
        job_history=f"http://{master}:{daemons.HISTORY_HTTP_PORT}" if compute else None,
    )
    draft = draft.with_state(addresses=addresses)
    if report is None and observation.report is None and draft.silence_s(observation.now_s) <= LATE_S:
        return draft  # a new leader keeps the figures of the status until it may have a report
    draft = dataclasses.replace(draft, state=model.without_figures(draft.state))
    if report is not None and report.yarn is not None:
        running, pending = sizing.tasks(report.yarn)
        draft = draft.with_state(
            load_percent=sizing.load_percent(observation, draft, report),
            slots=sizing.slots(observation, draft, report),
            containers=wire.Containers(running=running, pending=pending),
            applications=min(report.yarn.apps_running + report.yarn.apps_pending, sizing.MOST_TASKS),
        )
    if report is None or report.hdfs is None:
        return draft
    hdfs = wire.HdfsUsage(
        capacity_bytes=report.hdfs.capacity_bytes,
        used_bytes=report.hdfs.used_bytes,
        files=report.hdfs.files,
        missing_blocks=report.hdfs.missing,
        under_replicated_blocks=report.hdfs.under_replicated,
        live_data_nodes=degradation.live_data_nodes(report),
    )
    return draft.with_state(hdfs=hdfs)


def cluster_facts(observation: Observation, state: model.ClusterState) -> hadoop.ClusterFacts:
    """Return the facts of a cluster; the settings for clients are those that all nodes have."""
    cluster, spec = observation.cluster, observation.cluster.spec
    secrets = (*cluster.config.hadoop.image_pull_secrets, *(secret.name for secret in spec.image_pull_secrets or ()))
    return hadoop.ClusterFacts(
        uid=cluster.uid,
        namespace=cluster.namespace,
        name=cluster.name,
        queue=cluster.queue,
        phase=state.phase,
        is_ready=state.phase in _SERVING and state.holds(ConditionType.READY),
        has_compute=spec.compute,
        domain=cluster.domain,
        image=cluster.image,
        classpath=spec.classpath,
        java_home=spec.java_home,
        settings=cluster.config_map(state.settings or observation.rendered.digest),
        master=model.MASTER,
        image_pull_policy=spec.image_pull_policy,
        image_pull_secrets=tuple(dict.fromkeys(secrets)),
        user_id=files.user_ids(cluster)[0],
        hosts={pod.host: NodeName(pod.node) for pod in observation.nodes if pod.node is not None and not pod.is_over},
    )
