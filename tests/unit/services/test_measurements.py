"""The condition of a job whose policies decide without measurements of nodes."""

from boathouse.resources.names import ConditionType, Reason
from boathouse.services.instruments.missing import Problem
from boathouse.services.mrjob import conditions
from boathouse.services.mrjob.job_state import JobState

FAILING = Problem(reason=Reason.KUBELETS_FAILING, message="most kubelets cannot be read (timeout)")


def described(problem, state=None):
    """Return the next state, and its condition."""
    after = conditions.with_measurements(state or JobState(), problem, 0.0)
    return after, after.condition(ConditionType.SIGNALS_AVAILABLE)


def test_a_job_whose_policies_have_measurements_has_no_condition():
    assert described(None)[1] is None


def test_a_job_whose_policies_lack_measurements_says_why():
    _, condition = described(FAILING)
    assert (condition.status, condition.reason) == ("False", "KubeletsFailing")
    assert condition.message == FAILING.message


def test_a_job_whose_policies_have_measurements_again_says_so():
    state, _ = described(FAILING)
    _, condition = described(None, state)
    assert (condition.status, condition.reason, condition.message) == ("True", "KubeletsRead", "")


def test_a_finished_job_gets_no_condition():
    assert described(FAILING, JobState(phase="Succeeded"))[1] is None
