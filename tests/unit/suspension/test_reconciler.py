"""Which write a suspended task needs next, and when: each step of a suspension, in virtual time."""

import math
from typing import Any

import pytest

from boathouse.suspension import stages, suspending
from boathouse.suspension.stages import Reason
from boathouse.suspension.suspending import Action
from boathouse_policies import model, profiles
from tests.builders.operators.suspensions import CONTINUED, SHRUNK, SINCE_S, TASK, UNTIL_S, WHOLE, TaskDesk, record


class KeptTasks:
    """A node of two cores with running tasks, and the reconciler of their suspensions."""

    def __init__(self, **options: Any) -> None:
        self.desk = TaskDesk(**options)
        self.reconciler = suspending.SuspensionReconciler(self.desk.scheduler.state)

    def show(self, size: tuple[str, str], task: str = TASK, *, by: str = "fair", has_record: bool = True, **fields):
        """Show a task with this CPU request and limit in its spec."""
        return self.desk.show_task(size, task, record=record(by=by) if has_record else None, **fields)

    def due(self, *busy: str) -> list[tuple[str, Action]]:
        """Return the writes that are due, of tasks other than these."""
        return [(row.id, action) for row, action in self.reconciler.due({model.TaskId(task) for task in busy})]

    def reason(self) -> str:
        return self.reconciler.reason(self.desk.row(TASK))


def test_a_suspended_task_is_left_alone_until_its_time_is_over():
    tasks = KeptTasks()
    tasks.show(SHRUNK)
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], UNTIL_S)
    tasks.desk.now_s = UNTIL_S - 0.01
    assert tasks.due() == []
    tasks.desk.now_s = UNTIL_S
    assert (tasks.due(), tasks.reason()) == ([(TASK, Action.CONTINUE)], "TimeOver")


def test_a_task_whose_cpu_does_not_shrink_in_time_continues():
    tasks = KeptTasks()
    tasks.show(SHRUNK, actual="1")
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], SINCE_S + stages.LAPSES_S)
    tasks.desk.now_s = SINCE_S + stages.LAPSES_S - 0.01
    assert tasks.due() == []
    tasks.desk.now_s = SINCE_S + stages.LAPSES_S
    assert (tasks.due(), tasks.reason()) == ([(TASK, Action.CONTINUE)], "Lapsed")


def test_how_long_the_cpu_of_a_suspension_took_to_be_free_is_observed_once():
    tasks = KeptTasks()

    def observed(what: str) -> float:
        return tasks.desk.metric(f"boathouse_suspension_step_duration_seconds_{what}", step="actuated")

    tasks.show(SHRUNK, actual="1")
    tasks.due()
    assert observed("count") == 0
    tasks.desk.now_s = SINCE_S + 2
    tasks.show(SHRUNK)
    for _ in range(2):
        tasks.due()
        tasks.desk.now_s += 1
    assert (observed("count"), observed("sum")) == (1, 2)


def test_a_task_whose_cpu_has_shrunk_does_not_lapse():
    tasks = KeptTasks()
    tasks.show(SHRUNK)
    tasks.desk.now_s = SINCE_S + stages.LAPSES_S + 1
    assert tasks.due() == []


def test_a_task_is_resumed_before_its_time_for_the_reason_that_was_given():
    tasks = KeptTasks()
    tasks.show(SHRUNK)
    tasks.desk.row(TASK).suspension.ends = Reason.ADVISED
    assert (tasks.due(), tasks.reason()) == ([(TASK, Action.CONTINUE)], "Advised")
    assert tasks.due(TASK) == []  # a write of it is in flight


@pytest.mark.parametrize("by", ["another", "fair"])
def test_a_task_that_a_profile_of_former_times_suspended_is_resumed(by):
    tasks = KeptTasks()
    tasks.show(SHRUNK, by=by)
    assert tasks.reason() == (None if by == "fair" else "ProfileChanged")


def test_a_task_is_resumed_where_suspensions_are_switched_off():
    tasks = KeptTasks(switches=profiles.Switches(suspend=False))
    tasks.show(SHRUNK)
    assert (tasks.due(), tasks.reason()) == ([(TASK, Action.CONTINUE)], "SwitchedOff")


def test_a_task_whose_node_cannot_shrink_it_is_resumed():
    tasks = KeptTasks()
    tasks.show(SHRUNK, actual="1", resize="Infeasible")
    assert (tasks.due(), tasks.reason()) == ([(TASK, Action.CONTINUE)], "Infeasible")


def test_a_task_that_its_user_suspended_is_resumed_once_its_job_says_so():
    tasks = KeptTasks()
    tasks.show(SHRUNK, by="user")
    assert tasks.reason() is None  # its job is not known
    tasks.desk.submit(TASK)
    assert tasks.reason() == "Withdrawn"
    tasks.desk.scheduler.state.jobs.entry(model.JobId("j")).suspend_until_s = UNTIL_S
    assert tasks.reason() is None


def test_the_request_of_a_task_that_continues_grows_once_there_is_room():
    tasks = KeptTasks()
    tasks.show(CONTINUED)
    tasks.show(WHOLE, "demo/other")
    third = tasks.show(WHOLE, "demo/third")
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], math.inf)
    tasks.desk.delete(third)
    assert tasks.due() == [(TASK, Action.GROW)]


def test_of_two_tasks_that_continue_only_as_many_grow_as_there_is_room_for():
    tasks = KeptTasks()
    for task in (TASK, "demo/other"):
        tasks.show(CONTINUED, task)
    tasks.show(WHOLE, "demo/third")
    assert [action for _, action in tasks.due()] == [Action.GROW]


def test_a_growth_that_its_node_defers_is_taken_back_and_repeated_later():
    tasks = KeptTasks()
    tasks.show(CONTINUED)
    tasks.show(WHOLE, actual="1m", resize="Deferred")
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], SINCE_S + stages.DEFERRED_S)
    tasks.desk.now_s += stages.DEFERRED_S
    assert tasks.due() == [(TASK, Action.SHRINK_BACK)]
    tasks.show(CONTINUED)
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], tasks.desk.now_s + stages.DEFERRED_RETRY_S)
    tasks.desk.now_s += stages.DEFERRED_RETRY_S
    assert tasks.due() == [(TASK, Action.GROW)]


def test_a_growth_without_a_condition_is_left_to_its_node():
    tasks = KeptTasks()
    tasks.show(WHOLE, actual="1m")
    assert tasks.due() == []
    tasks.desk.now_s += stages.DEFERRED_S + 1
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], tasks.desk.now_s + stages.DEFERRED_S / 4)


def test_a_refused_resume_is_repeated_after_longer_and_longer_delays_with_the_request_each_second_time():
    tasks = KeptTasks()
    tasks.show(SHRUNK)
    tasks.desk.now_s = UNTIL_S
    actions = []
    for number, delay_s in enumerate((1.0, 2.0, 5.0, 10.0, 30.0, 30.0), start=1):
        actions += [action for _, action in tasks.due()]
        assert tasks.reconciler.refused(tasks.desk.row(TASK)) == number
        assert (tasks.due(), tasks.reconciler.next_s()) == ([], tasks.desk.now_s + delay_s)
        tasks.desk.now_s += delay_s
    assert actions == [Action.CONTINUE, Action.GROW] * 3


def test_failures_are_counted_anew_in_each_stage():
    tasks = KeptTasks()
    tasks.show(SHRUNK, actual="1")
    tasks.reconciler.refused(tasks.desk.row(TASK))
    tasks.show(SHRUNK)
    assert tasks.reconciler.refused(tasks.desk.row(TASK)) == 1


@pytest.mark.parametrize(("has_record", "original"), [(True, (1000, 2000)), (False, (100, 1000))])
def test_a_task_whose_record_was_removed_gets_the_cpu_of_its_last_record_or_a_guess_after_a_time(has_record, original):
    tasks = KeptTasks()
    if has_record:
        tasks.show(SHRUNK)
        tasks.due()
    tasks.show(SHRUNK, has_record=False)
    assert tasks.due() == ([(TASK, Action.RECORD)] if has_record else [])
    assert tasks.reconciler.next_s() == SINCE_S + 10
    tasks.desk.now_s += 10
    assert tasks.due() == [(TASK, Action.RECORD)]
    size = tasks.reconciler.original(tasks.desk.row(TASK))
    assert (size.request_milli, size.limit_milli) == original


def test_a_task_of_which_nothing_is_known_is_not_given_a_guess_before_its_job_could_be_submitted():
    tasks = KeptTasks()
    tasks.show(SHRUNK, has_record=False)
    tasks.desk.now_s += stages.SUBMITTED_S - 0.01
    assert tasks.reconciler.original(tasks.desk.row(TASK)) is None


def test_a_task_that_is_left_to_itself_needs_no_write_ever():
    tasks = KeptTasks()
    tasks.show(SHRUNK)
    tasks.desk.row(TASK).suspension.retry_s = math.inf
    tasks.desk.now_s = UNTIL_S
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], math.inf)


def test_the_record_of_an_earlier_suspension_does_not_wake_the_reconciler_while_a_task_is_to_pause():
    tasks = KeptTasks()
    tasks.show(WHOLE)
    tasks.desk.scheduler.state.pods.suspend(tasks.desk.row(TASK), order=None)
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], math.inf)


def test_what_is_remembered_of_a_pod_is_not_applied_to_its_successor():
    tasks = KeptTasks()
    pod = tasks.show(SHRUNK)
    tasks.desk.row(TASK).suspension.retry_s = math.inf
    tasks.desk.delete(pod)
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], math.inf)
    tasks.show(SHRUNK)
    assert (tasks.due(), tasks.reconciler.next_s()) == ([], UNTIL_S)


def test_a_task_that_is_not_suspended_is_charged_no_more_than_it_holds():
    desk = TaskDesk()
    desk.submit_tasks()
    assert suspending.ungrown_milli(desk.row(TASK)) == 0
