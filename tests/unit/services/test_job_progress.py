"""How far a job is."""

import pytest

from boathouse.services.mrjob import job_state
from boathouse.services.mrjob.planning import steps
from boathouse_task.contract import TaskReport
from tests.builders import mrjobs


def progress_of(*pods, reports=None, done=0, splits=4, **spec):
    job = mrjobs.job(numReduceTasks=1, **spec)
    succeeded = [mrjobs.succeeded_pod(f"m-{index}") for index in range(done)]
    state = mrjobs.desired(job, *succeeded, *pods, state=mrjobs.mapping(job, splits=splits)).state
    by_pod = {name: TaskReport(phase="read", **values) for name, values in (reports or {}).items()}
    return steps.with_progress(state, job, [*succeeded, *pods], by_pod)


def test_a_job_without_a_plan_has_no_progress():
    job = mrjobs.job()
    assert steps.with_progress(job_state.JobState(), job, (), {}).percent == 0


@pytest.mark.parametrize(("done", "expected"), [(0, 0), (2, 40), (4, 80)])
def test_each_task_has_the_same_weight(done, expected):
    assert progress_of(done=done).percent == expected


def test_tasks_that_run_count_by_what_they_report():
    state = progress_of(mrjobs.attempt_pod("m-2"), done=2, reports={"m-2-a1": {"progress": 0.5, "records_in": 7}})
    assert state.percent == 50
    assert (state.running.tasks, state.running.records_in) == (1, 7)


def test_an_impossible_report_counts_for_no_more_than_its_task():
    assert progress_of(mrjobs.attempt_pod("m-0"), reports={"m-0-a1": {"progress": 9.0}}).percent == 20


def test_only_a_job_whose_output_is_complete_is_at_100():
    job = mrjobs.job()
    committing = mrjobs.desired(job, mrjobs.succeeded_pod("r-0"), state=mrjobs.reducing(job)).state
    assert steps.with_progress(committing, job, (), {}).percent == 99
    done = mrjobs.desired(job, mrjobs.succeeded_pod("commit"), state=committing).state
    assert steps.with_progress(done, job, (), {}).percent == 100


def test_progress_is_restored_from_the_status():
    state = progress_of(mrjobs.attempt_pod("m-2"), done=2, reports={"m-2-a1": {"progress": 0.5}})
    read = job_state.from_status(job_state.to_status(state), reduces=1)
    assert (read.percent, read.running) == (state.percent, state.running)
