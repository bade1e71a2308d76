"""The status: read back as written, small, and standing on bitmaps."""

import json

from hypothesis import given
from hypothesis import strategies as st

from boathouse.resources import mrjob
from boathouse.services.mrjob import counters, record
from boathouse.services.mrjob.record import Record, StageRecord
from boathouse_task.contract import TaskType

TASKS = st.integers(0, 40).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 9), min_size=n, max_size=n) for _ in range(5)))
)


@given(TASKS)
def test_a_status_reads_back_as_it_was_written(build, arrays):
    winner, last, user, infrastructure, killed = arrays
    stage = StageRecord(
        winner=winner, last=last, user_failures=user, infrastructure_failures=infrastructure, killed=killed
    )
    base = build.mapping(build.job(), splits=len(winner))
    wrote = build.replace(base, stages={**base.stages, TaskType.MAP: stage})
    read = record.from_wire(json.loads(json.dumps(record.to_wire(wrote))), reduces=1)
    if not any(last):
        stage = build.replace(StageRecord.empty(len(last)), winner=[min(w, 1) for w in winner])
    assert read.stages[TaskType.MAP] == stage


def test_every_field_is_written_so_that_a_merge_patch_clears_what_is_gone():
    assert record.to_wire(Record())["reason"] is None


def test_progress_and_counts_are_for_people(build):
    job = build.job(numReduceTasks=2)
    state = build.look(job, build.won("m-0"), build.pod("m-1"), build.failed("m-2"), record=build.mapping(job)).record
    wire = record.to_wire(state)
    assert wire["progress"] == "maps 1/3, reduces 0/2"
    assert wire["maps"] == {
        "total": 3,
        "pending": 1,
        "running": 1,
        "succeeded": 1,
        "failedAttempts": 1,
        "killedAttempts": 0,
    }
    assert wire["failures"] == {"user": 1, "infrastructure": 0}


def test_the_largest_job_with_every_third_task_failing_keeps_its_status_below_32_kib(build):
    job = build.job()
    state = build.mapping(job, splits=mrjob.MAX_MAPS)
    stage = state.stages[TaskType.MAP]
    for index in range(0, stage.total, 3):
        stage.last[index], stage.user_failures[index], stage.winner[index] = 2 + index % 5, index % 3, 1 + index % 2
    assert len(json.dumps(record.to_wire(state))) < 32 * 1024


def test_counters_beyond_the_bound_are_counted_as_dropped():
    sums = {}
    counters.add(sums, {"g": {f"n{i:03d}": 1 for i in range(200)}})
    counters.add(sums, {"g": {"n000": 1}})
    assert sums["g"]["n000"] == 2
    assert sums["Boathouse"]["Counters dropped"] == 80
