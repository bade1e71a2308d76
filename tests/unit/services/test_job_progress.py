"""How far a job is."""

import pytest

from boathouse.services.mrjob.state import job_state, progress
from boathouse_task.contract import TaskReport


def told(build, *pods, reports=None, done=0, splits=4, **spec):
    job = build.job(numReduceTasks=1, **spec)
    won = [build.won(f"m-{index}") for index in range(done)]
    state = build.look(job, *won, *pods, state=build.mapping(job, splits=splits)).state
    known = {name: TaskReport(phase="read", **values) for name, values in (reports or {}).items()}
    return progress.with_progress(state, job, [*won, *pods], known)


def test_before_there_is_a_plan_nothing_is_done(build):
    job = build.job()
    assert progress.with_progress(job_state.JobState(), job, (), {}).percent == 0


@pytest.mark.parametrize(("done", "expected"), [(0, 0), (2, 40), (4, 80)])
def test_every_task_weighs_the_same(build, done, expected):
    assert told(build, done=done).percent == expected


def test_tasks_that_run_count_by_what_they_report(build):
    state = told(build, build.pod("m-2"), done=2, reports={"m-2-a1": {"progress": 0.5, "records_in": 7}})
    assert state.percent == 50
    assert (state.running.tasks, state.running.records_in) == (1, 7)


def test_what_is_not_believable_counts_for_no_more_than_a_task(build):
    assert told(build, build.pod("m-0"), reports={"m-0-a1": {"progress": 9.0}}).percent == 20


def test_only_a_job_whose_output_is_complete_is_at_100(build):
    job = build.job()
    committing = build.look(job, build.won("r-0"), state=build.reducing(job)).state
    assert progress.with_progress(committing, job, (), {}).percent == 99
    done = build.look(job, build.won("commit"), state=committing).state
    assert progress.with_progress(done, job, (), {}).percent == 100


def test_it_reads_back_from_the_status(build):
    state = told(build, build.pod("m-2"), done=2, reports={"m-2-a1": {"progress": 0.5}})
    read = job_state.from_status(job_state.to_status(state), reduces=1)
    assert (read.percent, read.running) == (state.percent, state.running)
