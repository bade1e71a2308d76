"""Jobs for single rules write and count what real Hadoop Streaming wrote and counted (`tests.streaming.record`)."""

import pytest

from tests.streaming import cases, jobs, ours, record


@pytest.fixture(scope="module")
def recorded():
    return record.recorded_cases()


def test_the_recording_is_of_these_jobs(recorded):
    assert {name: which for name, (which, _, _) in recorded.items()} == {
        name: record.digest(job) for name, job in cases.every().items()
    }


@pytest.mark.parametrize(("name", "job"), [pytest.param(*case, id=case[0]) for case in cases.every().items()])
def test_a_job_writes_and_counts_what_hadoop_does(recorded, tmp_path, name, job):
    _, parts, counters = recorded[name]
    found, counted = ours.run_counted(job, tmp_path / "job")
    assert jobs.comparable(job, found) == jobs.comparable(job, parts)
    assert counted == counters
