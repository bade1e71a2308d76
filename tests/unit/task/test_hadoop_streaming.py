"""Jobs made up by chance write what real Hadoop Streaming wrote for them, as recorded (`tests.streaming.record`)."""

import collections

import pytest

from tests.streaming import jobs, ours, record

TOGETHER = 5
"""Jobs of one test."""


def test_the_recording_is_of_these_jobs_and_tries_each_option_often():
    assert [record.digest(job) for job in jobs.every()] == [row["job"] for row in record.recorded()]
    counts = collections.Counter(option for job in jobs.every() for option in job.options)
    assert len(jobs.every()) == 500
    assert min(counts.values()) >= 20


@pytest.mark.parametrize("first", range(0, jobs.COUNT, TOGETHER))
def test_jobs_write_the_bytes_of_hadoop(tmp_path, first):
    different = {}
    for number in range(first, first + TOGETHER):
        job, recorded = jobs.every()[number], record.recorded()[number]
        expected, found = record.bytes_of(recorded["parts"]), ours.run(job, tmp_path / str(number))
        if jobs.comparable(job, found) != jobs.comparable(job, expected):
            different[number] = job, expected, found
    assert not different
