"""Conditions of a job: policies without measurements of nodes, and parts of the profile that are off."""

from boathouse.resources.names import ConditionType, Reason
from boathouse.services.frame.pod_life import Problem
from boathouse.services.mrjob import conditions
from boathouse.services.mrjob.job_state import JobState
from boathouse_policies.profiles.guard import Effect, Off, Part

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


HARM = Off(Part.MEMORY, 3600.0, Effect(decisions=12, predicted_s=30.0, realised_s=-90.0))


def condition(state):
    return state.condition(ConditionType.POLICIES_ACTIVE)


def test_a_job_for_which_all_parts_act_has_no_condition():
    assert condition(conditions.with_parts_off(JobState(), (), 0.0)) is None


def test_a_job_says_which_part_is_off_until_when_and_why():
    found = condition(conditions.with_parts_off(JobState(), [HARM], 0.0))
    assert (found.status, found.reason) == ("False", "Harmful")
    assert found.message == (
        "less memory than requested is off until 1970-01-01T01:00:00Z: 12 decisions for the program were to save 30 s "
        "of job time and saved -90 s"
    )


def test_a_part_that_a_switchback_switched_off_says_what_the_blocks_with_it_cost():
    off = Off(Part.MEMORY, 3600.0, Effect(12, 0.0, -340.0), in_blocks=True)
    assert condition(conditions.with_parts_off(JobState(), [off], 0.0)).message == (
        "less memory than requested is off until 1970-01-01T01:00:00Z: in 12 blocks of time with it, jobs of the "
        "namespace lost 340 s, compared with blocks without it"
    )


def test_a_part_that_is_off_in_the_cluster_names_no_program():
    found = condition(conditions.with_parts_off(JobState(), [Off(Part.SUSPENSION, 3600.0, Effect())], 0.0))
    assert found.message == "suspending reduces is off until 1970-01-01T01:00:00Z: it did harm in most namespaces"


def test_each_change_is_an_event_and_a_reconcile_without_one_is_none():
    before = JobState()
    off = conditions.with_parts_off(before, [HARM], 0.0)
    on = conditions.with_parts_off(off, (), 1.0)
    assert conditions.parts_off_event(before, off) == ("PolicyOff", condition(off).message)
    assert conditions.parts_off_event(off, conditions.with_parts_off(off, [HARM], 1.0)) is None
    assert conditions.parts_off_event(off, on) == ("PolicyOn", "all policies decide again")
    assert conditions.parts_off_event(on, conditions.with_parts_off(on, (), 2.0)) is None


def test_a_finished_job_keeps_its_condition():
    off = conditions.with_parts_off(JobState(), [HARM], 0.0)
    ended = conditions.with_parts_off(JobState(phase="Succeeded", conditions=off.conditions), (), 1.0)
    assert condition(ended).status == "False"
