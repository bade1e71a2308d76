"""Errors of the agent that persist although HDFS and YARN respond, such as folders that it cannot make. Pure."""

from typing import Final

from boathouse.resources.mrcluster.names import Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrcluster.planning.observation import LATE_S, Draft, Observation

PERSISTENT_S: Final = 60.0
"""Time after which an error in each report is no short failure."""


def remember(observation: Observation, draft: Draft) -> Draft:
    """Note since when each report has an error. Conditions of their own say that a daemon does not respond."""
    report = observation.report_within(LATE_S)
    responds = report is not None and report.hdfs and (report.yarn or not observation.cluster.spec.compute)
    if report is None or not responds or not report.error:
        return draft.with_marks(agent_failing_s=None)
    since_s = draft.marks.agent_failing_s
    return draft.with_marks(agent_failing_s=observation.now_s if since_s is None else since_s)


def problem(observation: Observation, draft: Draft) -> Problem | None:
    """Return the error of a cluster's agent that persists; None for nothing."""
    since_s, report = draft.marks.agent_failing_s, observation.report
    if since_s is None or report is None or draft.state.ready_s is None:
        return None
    if observation.now_s - since_s < PERSISTENT_S:
        return None
    return Problem(reason=Reason.AGENT_FAILING, message=f"the agent fails in each round: {report.error}")
