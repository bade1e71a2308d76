"""What is wrong with a cluster, and what runs of it. Pure.

A container of the master, or the agent's work, may fail while HDFS and YARN respond. Either is reported when it has
lasted for `FAILING_S`. What the status already reports stays, so that a new leader, which observes everything anew,
does not withdraw it for a minute.
"""

import collections
import dataclasses
from typing import Final

from boathouse.resources.mrcluster.names import ConditionType, Reason, Role
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster import model
from boathouse.services.mrcluster.planning import draining, replacing
from boathouse.services.mrcluster.planning.observation import LATE_S, READY_S, Failing, Observation, Plan, figures
from boathouse_task.cluster_contract import AgentReport, DfsState, YarnState

FAILING_S: Final = 60.0
"""How long something fails until the cluster is degraded, and how long a container must run until it is not."""
_LIVE = frozenset({DfsState.LIVE, DfsState.STALE, DfsState.DECOMMISSIONING})


def remember(observation: Observation, draft: Plan) -> Plan:
    """Note what fails, and since when."""
    marks = draft.marks
    return draft.with_marks(
        container_failing=_container(observation, marks.container_failing),
        agent_failing=_agent(observation, marks.agent_failing),
    )


def _persistent(observation: Observation, draft: Plan, failing: Failing | None) -> Problem | None:
    if failing is None or draft.state.ready_s is None:
        return None
    lasts = failing.seen_s - failing.since_s >= FAILING_S or observation.state.reason == failing.problem.reason
    return failing.problem if lasts else None


def _container(observation: Observation, last: Failing | None) -> Failing | None:
    """It is over when the pod has been ready without a problem for a time: a container runs between two failures."""
    master, now_s = observation.pod(model.MASTER), observation.now_s
    if master is None or master.is_over:
        return None
    if master.problem is not None:
        message = f"{model.MASTER}: {master.problem.message} ({master.problem.reason})"
        return _again(Problem(reason=Reason.MASTER_CONTAINER_FAILING, message=message), last, now_s)
    is_over = last is None or (master.is_ready and now_s - last.seen_s >= FAILING_S)
    return None if is_over else last


def _agent(observation: Observation, last: Failing | None) -> Failing | None:
    """It is over with a report that has no error. Conditions of their own say that a daemon does not respond."""
    report = observation.report_within(LATE_S)
    responds = report is not None and report.hdfs and (report.yarn or not observation.cluster.spec.compute)
    if report is None or not responds or not report.error:
        return None
    problem = Problem(reason=Reason.AGENT_FAILING, message=f"the agent fails in each round: {report.error}")
    return _again(problem, last, observation.now_s)


def _again(problem: Problem, last: Failing | None, now_s: float) -> Failing:
    return Failing(problem=problem, since_s=last.since_s if last else now_s, seen_s=now_s)


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """Whether HDFS or YARN is available; if not, why."""

    reason: Reason
    message: str = ""

    @property
    def is_available(self) -> bool:
        """Return whether it is available."""
        return self.reason is Reason.AVAILABLE


def degradation(observation: Observation, draft: Plan) -> Problem | None:
    """Return what is wrong with a cluster, the worst first; None for nothing."""
    worst = observation.halt or _silence(observation, draft) or replacing.lost_core_node(observation, draft)
    if worst is not None:
        return worst
    hdfs, was_ready = observation.hdfs_within(LATE_S), draft.state.ready_s is not None
    if hdfs is not None and not hdfs.safe_mode and hdfs.missing and was_ready:
        message = f"{hdfs.missing} blocks have no replica: bring their nodes back, or delete the files"
        return Problem(reason=Reason.MISSING_BLOCKS, message=message)
    if observation.unreachable is not None and was_ready:
        return observation.unreachable
    if problem := _persistent(observation, draft, draft.marks.container_failing):
        return problem
    if draining.is_barred(observation, draft):
        message = "the decommission of a core node was undone: see the events, and change the spec to retry it"
        return Problem(reason=Reason.DECOMMISSION_STALLED, message=message)
    return _other_version(observation) or _persistent(observation, draft, draft.marks.agent_failing)


def _other_version(observation: Observation) -> Problem | None:
    """Return that the image has another version of Hadoop than the spec; suffixes of vendors do not count."""
    hdfs, expected = observation.hdfs_within(LATE_S), observation.cluster.spec.version
    if hdfs is None or not hdfs.version or hdfs.version.partition("-")[0] == expected:
        return None
    message = (
        f"the NameNode is of Hadoop {hdfs.version}, and spec.version is {expected}: set spec.image to an image of that "
        "version, or recreate the cluster with the version of its image"
    )
    return Problem(reason=Reason.VERSION_MISMATCH, message=message)


def _silence(observation: Observation, draft: Plan) -> Problem | None:
    master, is_silent = observation.pod(model.MASTER), draft.silence_s(observation.now_s) > LATE_S
    if draft.state.ready_s is None or master is None or not master.is_ready or not is_silent:
        return None
    message = f"the agent in pod {master.name} has not reported for {LATE_S:.0f} s: see its log"
    return Problem(reason=Reason.MASTER_NOT_REPORTING, message=message)


def _still_available(observation: Observation, draft: Plan, condition_type: ConditionType) -> Service | None:
    """Return that a service is available, if the status says so and a new leader may not have been reported to yet."""
    condition, is_late = draft.state.condition(condition_type), draft.silence_s(observation.now_s) > READY_S
    if condition is None or condition.status != "True" or observation.report or is_late:
        return None
    return Service(Reason.AVAILABLE, condition.message)


def hdfs(observation: Observation, draft: Plan) -> Service:
    """Return whether HDFS is available: at first with all core nodes, later with all blocks."""
    if before := _still_available(observation, draft, ConditionType.HDFS_AVAILABLE):
        return before
    report = observation.report_within(READY_S)
    if report is None or report.hdfs is None:
        message = with_problem(observation, "the NameNode does not respond yet", Role.MASTER)
        return Service(Reason.STARTING, message)
    if report.hdfs.safe_mode:
        text = f": {report.hdfs.safe_mode_text}" if report.hdfs.safe_mode_text else ""
        return Service(Reason.SAFE_MODE, f"the NameNode is in safe mode{text}")
    live, least = live_data_nodes(report), _least_nodes(draft)
    if live < least:
        message = with_problem(observation, f"{live} of {least} DataNodes are live", Role.CORE)
        return Service(Reason.DATA_NODES_MISSING, message)
    if report.hdfs.missing:
        return Service(Reason.MISSING_BLOCKS, f"{report.hdfs.missing} blocks have no replica")
    return Service(Reason.AVAILABLE, f"{live} DataNodes are live")


def _least_nodes(draft: Plan) -> int:
    """Return how many core nodes must serve: all until the cluster is ready for the first time, then any."""
    return draft.state.first_core_nodes if draft.state.ready_s is None else 1


def yarn(observation: Observation, draft: Plan) -> Service:
    """Return whether YARN is available, whose ApplicationMasters run on core nodes: at first on all of them."""
    if not observation.cluster.spec.compute:
        return Service(Reason.NO_COMPUTE, "spec.compute is false")
    if before := _still_available(observation, draft, ConditionType.YARN_AVAILABLE):
        return before
    report = observation.report_within(READY_S)
    if report is None or report.yarn is None:
        message = with_problem(observation, "the ResourceManager does not respond yet", Role.MASTER)
        return Service(Reason.STARTING, message)
    reported, hosts = figures(report), draft.state.staying(Role.CORE)
    states = collections.Counter(reported[host].yarn for host in hosts)
    running, unhealthy = states[YarnState.RUNNING], states[YarnState.UNHEALTHY]
    if running >= _least_nodes(draft):
        return Service(Reason.AVAILABLE, f"{running} core nodes run NodeManagers")
    note = f"; {unhealthy} are unhealthy, as with disks that are nearly full" if unhealthy else ""
    message = f"{running} of {len(hosts)} core nodes have a NodeManager that runs{note}"
    return Service(Reason.NODE_MANAGERS_MISSING, with_problem(observation, message, Role.CORE))


def with_problem(observation: Observation, message: str, *roles: Role) -> str:
    """Return a message with why the first pod of these roles that does not start does not."""
    leaving = observation.state.leaving_hosts
    for pod in observation.nodes:
        if pod.role in roles and pod.problem is not None and pod.host not in leaving:
            return f"{message}; {pod.host}: {pod.problem.message} ({pod.problem.reason})"
    return message


def live_data_nodes(report: AgentReport) -> int:
    """Return the number of DataNodes that serve."""
    return sum(node.dfs in _LIVE for node in report.nodes)
