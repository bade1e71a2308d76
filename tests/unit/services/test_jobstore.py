"""The MRJobs as last seen."""

import pytest

from boathouse.services.mrjob.jobstore import JobStore


def body(revision, uid="u1", name="wc"):
    return {"metadata": {"namespace": "demo", "name": name, "uid": uid, "resourceVersion": str(revision)}}


@pytest.fixture
def marked():
    return []


@pytest.fixture
def jobs(marked):
    return JobStore(marked.append)


def test_a_newer_version_is_kept_and_marks_the_job(jobs, marked):
    jobs.seen(body(9))
    jobs.seen(body(10))
    assert jobs.get("demo/wc") == body(10)
    assert marked == ["demo/wc"] * 2


def test_an_older_version_changes_nothing(jobs, marked):
    jobs.seen(body(10))
    jobs.seen(body(9))
    assert jobs.get("demo/wc") == body(10)
    assert marked == ["demo/wc"]


def test_the_answer_to_our_own_write_marks_nothing(jobs, marked):
    jobs.put(body(10))
    jobs.seen(body(10))
    assert marked == []


def test_a_job_is_found_by_its_uid_until_it_is_gone(jobs):
    jobs.seen(body(1))
    assert jobs.key("u1") == "demo/wc"
    jobs.gone(body(1))
    assert (jobs.key("u1"), jobs.get("demo/wc")) == (None, None)


def test_a_late_word_of_a_former_jobs_deletion_does_not_touch_its_successor(jobs):
    jobs.seen(body(1, uid="u1"))
    jobs.seen(body(5, uid="u2"))
    jobs.gone(body(2, uid="u1"))
    assert (jobs.key("u1"), jobs.key("u2")) == (None, "demo/wc")


def test_what_comes_late_does_not_bring_a_deleted_job_back(jobs, marked):
    jobs.seen(body(1))
    jobs.gone(body(3))
    assert not jobs.put(body(2))  # the answer to a write of ours
    jobs.seen(body(2))  # a list that was begun before
    assert (jobs.get("demo/wc"), jobs.key("u1"), len(marked)) == (None, None, 2)


def test_a_job_that_was_deleted_before_it_was_seen_is_not_taken_in_either(jobs):
    jobs.gone(body(3))
    jobs.seen(body(2))
    assert jobs.get("demo/wc") is None
