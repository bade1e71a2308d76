"""The load of a cluster as its resizing policy sees it (Koala's F), and how many nodes it shall have. Pure.

The figures of the load come from the cluster's image. They can make it grow within its own maximum, and nothing else.

| nodes | wanted |
|---|---|
| core | `core.count`; with GGDP what the policy took, up to `core.maximum`; never fewer than at first |
| transient | `transient.minimum`; with GSP and GGP what the policy keeps, from the minimum to the maximum |

A policy's decision is used once, and the number that it led to is in the status from then on.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from boathouse.resources.mrcluster.names import EventReason, Role
from boathouse.resources.mrcluster.status import SizeReason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster.model import host_of, role_of
from boathouse.services.mrcluster.planning import draining
from boathouse.services.mrcluster.planning.observation import FRESH_S, LATE_S, Observation, Plan, figures
from boathouse_policies import koala, model
from boathouse_policies.koala.cluster import UNBOUNDED
from boathouse_task.cluster_contract import AgentReport, YarnFigures, YarnState

MOST_TASKS: Final = UNBOUNDED
"""Policies count with floats; no cluster has more tasks."""
NO_ROOM_S: Final = 120.0
"""How long a transient node waits for room before it is withdrawn."""
SILENT_S: Final = 900.0
"""How long a cluster without a report keeps the nodes that its policy took: as long as NodeManagers wait for YARN."""


def tasks(yarn: YarnFigures) -> tuple[int, int]:
    """Return the running and the pending tasks. An application that waits counts as one; a running one's master not."""
    return min(max(0, yarn.running - yarn.apps_running), MOST_TASKS), min(yarn.pending + yarn.apps_pending, MOST_TASKS)


def slots(observation: Observation, draft: Plan, report: AgentReport) -> int:
    """Return the map tasks that fit on the nodes that stay: YARN counts a lost node as running for minutes."""
    reported, slot_mb = figures(report), max(1, observation.sizes.map_mb)
    staying = frozenset(draft.state.wanted_hosts) - draft.state.leaving_hosts
    offered = sum(
        node.memory_mb // slot_mb
        for host, node in reported.items()
        if node.yarn is YarnState.RUNNING and host in staying
    )
    return min(offered + report.idle_nodes * (observation.sizes.transient_mb // slot_mb), MOST_TASKS)


def load_percent(observation: Observation, draft: Plan, report: AgentReport) -> int | None:
    """Return F in percent, without the nodes on their way; None where tasks find no slot at all."""
    if report.yarn is None:
        return None
    count, slot_count = sum(tasks(report.yarn)), slots(observation, draft, report)
    return round(100 * count / slot_count) if slot_count else None if count else 0


def for_policy(observation: Observation, draft: Plan) -> koala.Cluster | None:
    """Return the cluster for its policy; None without a fresh report of its ResourceManager."""
    report = observation.report_within(FRESH_S)
    if report is None or report.yarn is None or observation.halt is not None:
        return None
    spec, state = observation.cluster.spec, draft.state
    running, pending = tasks(report.yarn)
    core, transient = (state.staying(role) for role in (Role.CORE, Role.TRANSIENT))
    core_up, transient_up = registered(report, core, 0), registered(report, transient, report.idle_nodes)
    staying = len(core) + len(transient)
    stores = spec.resizing.policy == "GGDP"
    most = observation.cluster.most_core_nodes + len(transient) if stores else len(core) + spec.transient.maximum
    ended_s = draft.marks.no_application_s
    waits_for_room = not draft.marks.unplaced_s.keys() <= set(observation.lost_claims)  # those never get a node
    return koala.Cluster(
        name=model.JobId(observation.cluster.uid),
        running_tasks=running,
        runnable_tasks=pending,
        slots=slots(observation, draft, report),
        node_slots=(observation.sizes.core_mb if stores else observation.sizes.transient_mb)
        // max(1, observation.sizes.map_mb),
        core_nodes=core_up,
        transient_nodes=transient_up,
        first_core_nodes=state.first_core_nodes,
        pending_nodes=staying - core_up - transient_up,
        leaving_nodes=len(state.leaving),
        workload_ended=int(ended_s is not None and observation.now_s - ended_s >= spec.resizing.period_s),
        least_transient_nodes=spec.transient.minimum,
        most_nodes=staying if waits_for_room else most,
        weight=spec.weight,
    )


def registered(report: AgentReport, hosts: tuple[str, ...], idle_nodes: int) -> int:
    """Return how many of these hosts run NodeManagers; `idle_nodes` are those that a long report leaves out."""
    reported = figures(report)
    return min(len(hosts), idle_nodes + sum(reported[host].yarn is YarnState.RUNNING for host in hosts))


def policy_constants(observation: Observation) -> koala.Config:
    """Return the constants of a cluster's policy."""
    resizing = observation.cluster.spec.resizing
    return koala.Config(
        policy=koala.Policy(resizing.policy.lower()),
        grow_above=resizing.grow_above_percent / 100,
        shrink_below=resizing.shrink_below_percent / 100,
        grow_by=resizing.grow_by,
        shrink_by=resizing.shrink_by,
        offer_nodes=resizing.offer_nodes,
        gsp_every_s=resizing.period_s,
        greedy_every_s=resizing.period_s,
    )


def size(observation: Observation, draft: Plan) -> Plan:
    """Decide how many nodes the cluster shall have, and add or remove nodes."""
    if observation.report_within(LATE_S) is None and draft.state.ready_s is not None:
        return _given_back(observation, draft) if draft.silence_s(observation.now_s) >= SILENT_S else draft
    draft = _decided(observation, _withdrawn(observation, draft))
    for role in (Role.CORE, Role.TRANSIENT):
        missing = draft.state.wanted(role) - len(draft.state.staying(role))
        draft = _more(observation, draft, role, missing) if missing > 0 else _fewer(observation, draft, role, -missing)
    return draft


def _decided(observation: Observation, draft: Plan) -> Plan:
    core, transient = _wanted_core(observation, draft), _wanted_transient(observation, draft)
    before = tuple(draft.state.wanted(role) for role in (Role.CORE, Role.TRANSIENT))
    target = observation.target
    draft = dataclasses.replace(draft, consumed=target)
    if (core, transient) == before:
        return draft
    nodes = f"{core} core and {transient} transient nodes"
    reason = target.reason if target else f"by its spec: {nodes}"
    size_reason = SizeReason(time_s=observation.now_s, reason=reason, offer=target.offer if target else 0)
    draft = draft.with_state(size=size_reason).with_wanted(Role.CORE, core).with_wanted(Role.TRANSIENT, transient)
    return draft.with_event(EventReason.GREW, f"{nodes}: {reason}") if core + transient > sum(before) else draft


def _wanted_core(observation: Observation, draft: Plan) -> int:
    spec, state, target = observation.cluster.spec, draft.state, observation.target
    if spec.resizing.policy != "GGDP":
        return max(spec.core.count, state.first_core_nodes)
    wanted = max(spec.core.count, state.wanted(Role.CORE))
    if target is not None and target.stores:
        wanted = max(wanted, target.nodes - len(state.staying(Role.TRANSIENT)))
    return max(state.first_core_nodes, spec.core.count, min(wanted, observation.cluster.most_core_nodes))


def _wanted_transient(observation: Observation, draft: Plan) -> int:
    spec, state, target = observation.cluster.spec, draft.state, observation.target
    if spec.resizing.policy in {"Static", "GGDP"}:
        return spec.transient.minimum
    wanted = state.wanted(Role.TRANSIENT)
    if target is not None and not target.stores:
        wanted = target.nodes - len(state.staying(Role.CORE))
    return max(spec.transient.minimum, min(wanted, spec.transient.maximum))


def _more(observation: Observation, draft: Plan, role: Role, missing: int) -> Plan:
    """Keep nodes that were to leave, then add new ones."""
    for host in draining.undoable(observation, draft, role)[:missing]:
        draft, missing = draft.kept(host), missing - 1
        draft = draft.with_event(EventReason.GREW, f"{host} stays: the cluster needs it again")
    if role is Role.TRANSIENT:
        return draft.added(role, range(draft.state.next_transient, draft.state.next_transient + missing))
    used = set(draft.state.wanted_core)
    free = (
        number
        for number in range(len(used) + missing + len(observation.nodes))
        if number not in used and observation.is_absent(host_of(role, number))
    )
    return draft.added(role, [number for number, _ in zip(free, range(missing), strict=False)])


def _fewer(observation: Observation, draft: Plan, role: Role, spare: int) -> Plan:
    """Let nodes leave: a few transient ones at a time, core nodes one after the other."""
    if not spare or not draining.places(draft.state):
        return draft
    if role is Role.TRANSIENT:
        return _fewer_transient(observation, draft, draining.transient_candidates(observation, draft), spare)
    candidate = draining.core_candidate(observation, draft)
    return (
        draft
        if isinstance(candidate, Problem)
        else draining.begin(observation, draft, [candidate], draining.Leave.SHRINKING)
    )


def _fewer_transient(observation: Observation, draft: Plan, candidates: Sequence[str], spare: int) -> Plan:
    leaving = [node for node in draft.state.leaving if not draining.has_ended(node)]
    leaving_transient = sum(role_of(node.host) is Role.TRANSIENT for node in leaving)
    most = min(spare, observation.cluster.spec.resizing.shrink_by - leaving_transient, draining.places(draft.state))
    return draining.begin(observation, draft, candidates[: max(0, most)], draining.Leave.SHRINKING)


def _given_back(observation: Observation, draft: Plan) -> Plan:
    """Let the transient nodes leave that the policy took: without figures, nothing speaks for them.

    No agent drains them, so that their pods are deleted after the drain timeout.
    """
    minimum = observation.cluster.spec.transient.minimum
    if draft.state.wanted(Role.TRANSIENT) > minimum:
        reason = f"no report for {SILENT_S / 60:.0f} minutes: {minimum} transient nodes by its spec"
        size_reason = SizeReason(time_s=observation.now_s, reason=reason)
        draft = draft.with_state(size=size_reason).with_wanted(Role.TRANSIENT, minimum)
    hosts = draft.state.staying(Role.TRANSIENT)
    return _fewer_transient(observation, draft, hosts[::-1], max(0, len(hosts) - minimum))


def _withdrawn(observation: Observation, draft: Plan) -> Plan:
    """Give up transient nodes for which there was no room for long; what the spec demands waits on."""
    hosts, since_s, now_s = draft.state.staying(Role.TRANSIENT), draft.marks.unplaced_s, observation.now_s
    without_room = [host for host in hosts[::-1] if now_s - since_s.get(host, now_s) >= NO_ROOM_S]
    for host in without_room[: max(0, len(hosts) - observation.cluster.spec.transient.minimum)]:
        wanted = draft.state.wanted(Role.TRANSIENT) - 1
        draft = draft.deleting(observation.pod(host)).removed(host).with_wanted(Role.TRANSIENT, wanted)
        draft = draft.with_marks(withdrawn_s=now_s)
    return draft
