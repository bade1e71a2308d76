"""The words and the time limits of a suspension agree with one another, and with the task's."""

from boathouse.suspension import stages
from boathouse.suspension.stages import Reason
from boathouse_task import contract


def test_every_refusal_of_a_task_has_a_name_of_its_own():
    assert {Reason.of(refusal) for refusal in contract.SuspendRefusal} == {
        Reason.PHASE_PASSED,
        Reason.BUSY,
        Reason.NO_CGROUP,
    }


def test_a_reason_that_is_not_ours_counts_as_other():
    assert Reason.of("PodRefused") is Reason.OTHER


def test_the_operator_stops_shrinking_a_pod_before_its_task_continues_by_itself():
    assert 0 < stages.SHRUNK_WITHIN_S < stages.LAPSES_S == contract.SHRINKS_WITHIN_S


def test_an_acknowledgement_is_awaited_for_as_long_as_a_task_tries_to_send_it():
    assert stages.ACKNOWLEDGED_WITHIN_S > contract.STOPS_WITHIN_S + contract.ACKNOWLEDGES_WITHIN_S


def test_a_task_that_waits_for_its_pod_to_shrink_is_not_lost_before_its_longest_pause_is_over():
    assert stages.ORDERED_WITHIN_S + stages.ACKNOWLEDGED_WITHIN_S + stages.LAPSES_S < contract.MOST_SUSPENDED_S
