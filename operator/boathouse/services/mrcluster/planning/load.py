"""The load of a cluster as its resizing policy sees it (Koala's F). Pure.

The figures come from the cluster's image. They can make it grow within its own maximum, and nothing else.
"""

from typing import Final

from boathouse.resources.mrcluster.names import Role
from boathouse.services.mrcluster.planning import membership
from boathouse.services.mrcluster.planning.observation import ABSENT, FRESH_S, Draft, Observation, figures
from boathouse_policies import koala, model
from boathouse_policies.koala.cluster import UNBOUNDED
from boathouse_task.cluster_contract import AgentReport, YarnFigures, YarnState

MOST_TASKS: Final = UNBOUNDED
"""Policies count with floats; no cluster has more tasks."""


def tasks(yarn: YarnFigures) -> tuple[int, int]:
    """Return the running and the pending tasks. An application that waits counts as one; a running one's master not."""
    running = max(0, yarn.running - yarn.apps_running)
    return min(running, MOST_TASKS), min(yarn.pending + yarn.apps_pending, MOST_TASKS)


def slots(observation: Observation, draft: Draft, report: AgentReport) -> int:
    """Return the map tasks that fit on the nodes that run and stay, at the same time.

    YARN counts a lost node as running for minutes, when the cluster has given up its name.
    """
    known, slot_mb = figures(report), max(1, observation.slot_mb)
    staying = frozenset(draft.state.wanted_hosts) - draft.state.leaving_hosts
    offered = sum(
        node.memory_mb // slot_mb for host, node in known.items() if node.yarn is YarnState.RUNNING and host in staying
    )
    return min(offered + report.idle_nodes * (observation.transient_mb // slot_mb), MOST_TASKS)


def percent(observation: Observation, draft: Draft, report: AgentReport) -> int | None:
    """Return F in percent, without the nodes on their way; None where tasks find no slot at all."""
    if report.yarn is None:
        return None
    count, found = sum(tasks(report.yarn)), slots(observation, draft, report)
    return round(100 * count / found) if found else None if count else 0


def cluster(observation: Observation, draft: Draft) -> koala.Cluster | None:
    """Return the cluster for its policy; None without a fresh report of its ResourceManager."""
    report = observation.report_within(FRESH_S)
    if report is None or report.yarn is None or observation.halt is not None:
        return None
    spec, state = observation.cluster.spec, draft.state
    running, pending = tasks(report.yarn)
    core, transient = (membership.staying_hosts(state, role) for role in (Role.CORE, Role.TRANSIENT))
    core_up, transient_up = _registered(report, core, 0), _registered(report, transient, report.idle_nodes)
    staying = len(core) + len(transient)
    stores = spec.resizing.policy == "GGDP"
    most = observation.cluster.most_core_nodes + len(transient) if stores else len(core) + spec.transient.maximum
    ended_s = draft.marks.no_application_s
    return koala.Cluster(
        name=model.JobId(observation.cluster.uid),
        running_tasks=running,
        runnable_tasks=pending,
        slots=slots(observation, draft, report),
        node_slots=(observation.core_mb if stores else observation.transient_mb) // max(1, observation.slot_mb),
        core_nodes=core_up,
        transient_nodes=transient_up,
        first_core_nodes=state.first_core_nodes,
        pending_nodes=staying - core_up - transient_up,
        leaving_nodes=len(state.leaving),
        workload_ended=int(ended_s is not None and observation.now_s - ended_s >= spec.resizing.period_s),
        least_transient_nodes=spec.transient.minimum,
        most_nodes=staying if _waits_for_room(observation, draft) else most,
        weight=spec.weight,
    )


def _waits_for_room(observation: Observation, draft: Draft) -> bool:
    """Return whether nodes have no room yet, so that the cluster takes no more. A lost core node never gets one."""
    lost = {host for host, claim in observation.claims.items() if claim.is_lost}
    return not draft.marks.unplaced_s.keys() <= lost


def _registered(report: AgentReport, hosts: tuple[str, ...], idle_nodes: int) -> int:
    known = figures(report)
    running = sum(known.get(host, ABSENT).yarn is YarnState.RUNNING for host in hosts)
    return min(len(hosts), running + idle_nodes)


def constants(observation: Observation) -> koala.Config:
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
