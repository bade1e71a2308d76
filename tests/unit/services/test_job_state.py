"""The status: read back as written, small, and standing on bitmaps."""

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.resources.mrjob import spec
from boathouse.services.frame.status_writer import stripped
from boathouse.services.mrjob.attempts import results
from boathouse.services.mrjob.state import job_state
from boathouse.services.mrjob.state.job_state import JobState, StageState
from boathouse_task.contract import TaskType

TASKS = st.integers(0, 40).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 9), min_size=n, max_size=n) for _ in range(5)))
)


@given(TASKS)
def test_a_status_reads_back_as_it_was_written(build, arrays):
    winner, last, user, infrastructure, killed = arrays
    stage = StageState(
        winner=winner, last=last, user_failures=user, infrastructure_failures=infrastructure, killed=killed
    )
    base = build.mapping(build.job(), splits=len(winner))
    wrote = build.replace(base, stages={**base.stages, TaskType.MAP: stage})
    read = job_state.from_status(json.loads(json.dumps(job_state.to_status(wrote))), reduces=1)
    if not any(last):
        stage = build.replace(StageState.empty(len(last)), winner=[min(w, 1) for w in winner])
    assert read.stages[TaskType.MAP] == stage


def test_every_field_is_written_so_that_a_merge_patch_clears_what_is_gone():
    assert job_state.to_status(JobState())["reason"] is None


def test_progress_and_counts_are_for_people(build):
    job = build.job(numReduceTasks=2)
    state = build.look(job, build.won("m-0"), build.pod("m-1"), build.failed("m-2"), state=build.mapping(job)).state
    wire = job_state.to_status(state)
    assert wire["progress"] == "maps 1/3, reduces 0/2"
    assert wire["maps"] == {
        "total": 3,
        "pending": 1,
        "running": 1,
        "suspended": 0,
        "succeeded": 1,
        "failedAttempts": 1,
        "killedAttempts": 0,
    }
    assert wire["failures"] == {"user": 1, "infrastructure": 0}


def test_the_largest_job_with_every_third_task_failing_keeps_its_status_below_32_kib(build):
    job = build.job()
    state = build.mapping(job, splits=spec.MAX_MAPS)
    stage = state.stages[TaskType.MAP]
    for index in range(0, stage.total, 3):
        stage.last[index], stage.user_failures[index], stage.winner[index] = 2 + index % 5, index % 3, 1 + index % 2
    assert len(json.dumps(job_state.to_status(state))) < 32 * 1024


def test_counters_beyond_the_bound_are_counted_as_dropped():
    sums = {}
    results.add_counters(sums, {"g": {f"n{i:03d}": 1 for i in range(200)}})
    results.add_counters(sums, {"g": {"n000": 1}})
    assert sums["g"]["n000"] == 2
    assert sums["Boathouse"]["Counters dropped"] == 80


# --- a status that another version, or anybody, wrote


def written(build, **more):
    """The status of a job of three maps of which one is done, and what somebody else put into it."""
    job = build.job()
    state = build.look(job, build.won("m-0"), build.pod("m-1", 2), state=build.mapping(job)).state
    return json.loads(json.dumps(stripped(job_state.to_status(state)))) | more


CONDITION = {"type": "Quiesced", "status": "True", "reason": "New", "lastTransitionTime": "2026-01-01T00:00:00Z"}
BOMB = base64.b64encode(zlib.compress(bytes(200_000_000), 9)).decode()


@pytest.mark.parametrize(
    "strange",
    [
        {"phase": "Rebalancing"},
        {"phase": 7},
        {"progressPercent": 400},
        {"lastFailures": [{"task": "m-0"}, "x"]},
        {"conditions": [{"type": "Admitted", "status": "Maybe"}, "x", CONDITION]},
        {"counters": {"g": {"n": "many"}, "h": 5}},
        {"startTime": "yesterday", "completionTime": "never"},
        {"steps": -4, "currentStep": -9},
        {"newField": {"deep": [1, 2]}},
        {"resources": [], "running": "all", "failures": 3},
    ],
    ids=lambda strange: next(iter(strange)),
)
def test_what_cannot_be_read_of_a_status_costs_itself_and_nothing_else(build, strange):
    read = job_state.from_status(written(build, **strange), reduces=1)
    maps = read.stages[TaskType.MAP]
    assert (maps.winner, maps.last[1], read.plan.splits) == ([1, 0, 0], 2, 3)
    assert not read.finished
    assert job_state.to_status(read)["plan"]["splits"] == 3


def test_an_unknown_phase_is_derived_again(build):
    read = job_state.from_status(written(build, phase="Rebalancing"), reduces=1)
    assert build.look(build.job(), state=read).state.phase == "Map"


def test_a_condition_of_another_version_is_kept(build):
    read = job_state.from_status(written(build, conditions=[CONDITION]), reduces=1)
    kept = build.look(build.job(), state=read).state.conditions
    assert [each.type for each in kept] == ["Admitted", "Scheduled", "Running", "Quiesced"]


@pytest.mark.parametrize("splits", [-1, spec.MAX_MAPS + 1, 10**15])
def test_a_plan_that_no_job_can_have_is_none(build, splits):
    status = written(build)
    status["plan"]["splits"] = splits
    assert job_state.from_status(status, reduces=1).plan is None


@pytest.mark.parametrize("text", [BOMB, "not base64!", base64.b64encode(b"no zlib").decode()], ids=["bomb", "x", "raw"])
def test_arrays_that_are_no_arrays_take_no_memory_and_count_for_nothing(build, text):
    status = written(build)
    status["attempts"]["map"]["killed"] = text
    read = job_state.from_status(status, reduces=1)
    assert read.stages[TaskType.MAP].killed == [0, 0, 0]
    assert read.stages[TaskType.MAP].last[1] == 2


def test_what_is_no_more_is_cleared_also_inside_the_attempts(build):
    assert job_state.to_status(build.mapping(build.job()))["attempts"]["map"] is None
