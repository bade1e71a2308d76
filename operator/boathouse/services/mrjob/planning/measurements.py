"""Plan what is said of a job whose policies decide without measurements of nodes. Pure."""

import dataclasses

from boathouse.resources.names import ConditionType, Reason
from boathouse.services.instruments import missing
from boathouse.services.mrjob.state import conditions
from boathouse.services.mrjob.state.job_state import JobState


def described(state: JobState, problem: missing.Problem | None, now_s: float) -> JobState:
    """Return the state with the condition `SignalsAvailable`, which a job has from its first problem on."""
    if state.finished or (problem is None and state.condition(ConditionType.SIGNALS_AVAILABLE) is None):
        return state
    reason, message = (Reason.KUBELETS_READ, "") if problem is None else (problem.reason, problem.message)
    known = conditions.table(state, now_s)
    known.set(ConditionType.SIGNALS_AVAILABLE, problem is None, reason, message)
    return dataclasses.replace(state, conditions=known.conditions)
