"""What fails in the master's pod while HDFS and YARN may respond: a container, or the agent's work. Pure.

Either is reported when it has lasted for `FAILING_S`. What the status already reports stays, so that a new leader,
which observes everything anew, does not withdraw it for a minute.
"""

from typing import Final

from boathouse.resources.mrcluster.names import Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster import naming
from boathouse.services.mrcluster.planning.observation import LATE_S, Draft, Failing, Observation

FAILING_S: Final = 60.0
"""How long something fails until the cluster is degraded, and how long a container must run until it is not."""


def remember(observation: Observation, draft: Draft) -> Draft:
    """Note what fails, and since when."""
    marks = draft.marks
    return draft.with_marks(
        container_failing=_container(observation, marks.container_failing),
        agent_failing=_agent(observation, marks.agent_failing),
    )


def container(observation: Observation, draft: Draft) -> Problem | None:
    """Return the problem of a container of the master that persists; None for none."""
    failing = _persistent(observation, draft, draft.marks.container_failing, Reason.MASTER_CONTAINER_FAILING)
    if failing is None:
        return None
    message = f"{naming.MASTER}: {failing.message} ({failing.reason})"
    return Problem(reason=Reason.MASTER_CONTAINER_FAILING, message=message)


def agent(observation: Observation, draft: Draft) -> Problem | None:
    """Return the error of the agent that persists; None for none."""
    return _persistent(observation, draft, draft.marks.agent_failing, Reason.AGENT_FAILING)


def _persistent(observation: Observation, draft: Draft, failing: Failing | None, reason: Reason) -> Problem | None:
    if failing is None or draft.state.ready_s is None:
        return None
    lasts = failing.seen_s - failing.since_s >= FAILING_S or observation.state.reason == reason
    return failing.problem if lasts else None


def _container(observation: Observation, known: Failing | None) -> Failing | None:
    """It is over when the pod has been ready without a problem for a time: a container runs between two failures."""
    master, now_s = observation.pod(naming.MASTER), observation.now_s
    if master is None or master.is_over:
        return None
    if master.problem is not None:
        return _again(master.problem, known, now_s)
    is_over = known is None or (master.is_ready and now_s - known.seen_s >= FAILING_S)
    return None if is_over else known


def _agent(observation: Observation, known: Failing | None) -> Failing | None:
    """It is over with a report that has no error. Conditions of their own say that a daemon does not respond."""
    report = observation.report_within(LATE_S)
    responds = report is not None and report.hdfs and (report.yarn or not observation.cluster.spec.compute)
    if report is None or not responds or not report.error:
        return None
    problem = Problem(reason=Reason.AGENT_FAILING, message=f"the agent fails in each round: {report.error}")
    return _again(problem, known, observation.now_s)


def _again(problem: Problem, known: Failing | None, now_s: float) -> Failing:
    return Failing(problem=problem, since_s=known.since_s if known else now_s, seen_s=now_s)
