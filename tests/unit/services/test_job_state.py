"""The status of a job: it is restored as it was written, is small, and accepts what anybody wrote."""

import base64
import dataclasses
import json

import pytest
from hypothesis import given, settings, strategies as st

from boathouse.resources.mrjob import spec
from boathouse.services.frame.status_codec import stripped
from boathouse.services.mrjob import job_state, results
from boathouse.services.mrjob.job_state import JobState, StageState
from boathouse.services.mrjob.kind import MRJobKind
from boathouse_task.contract import TaskType
from tests.builders import mrjobs
from tests.builders.bombs import ZLIB, bomb

NUMBERS = st.integers(0, 9)
TASKS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=40)


@settings(max_examples=40)
@given(TASKS)
def test_a_status_is_restored_as_it_was_written(tasks):
    winner, last, user, infrastructure, killed = ([task[column] for task in tasks] for column in range(5))
    stage = StageState(
        winner=winner, last=last, user_failures=user, infrastructure_failures=infrastructure, killed=killed
    )
    base = mrjobs.mapping(mrjobs.job(), splits=len(winner))
    written = dataclasses.replace(base, stages={**base.stages, TaskType.MAP: stage})
    read = job_state.from_status(json.loads(json.dumps(job_state.to_status(written))), reduces=1)
    if not any(last):
        stage = dataclasses.replace(StageState.empty(len(last)), winner=[min(w, 1) for w in winner])
    assert (read.stages[TaskType.MAP], read.stages[TaskType.SETUP].winner) == (stage, [1])


def test_every_field_is_written_so_that_a_merge_patch_clears_what_is_gone():
    assert job_state.to_status(JobState())["reason"] is None


def test_the_reduces_of_a_job_that_cannot_be_read_are_those_of_its_status():
    written = job_state.to_status(mrjobs.mapping(mrjobs.job(numReduceTasks=2)))
    state = MRJobKind.load(None, written, None)
    assert len(state.stages[TaskType.REDUCE].winner) == 2


def test_a_status_has_progress_and_counts_of_tasks():
    job = mrjobs.job(numReduceTasks=2)
    state = mrjobs.desired(
        job, mrjobs.succeeded_pod("m-0"), mrjobs.attempt_pod("m-1"), mrjobs.failed_pod("m-2"), state=mrjobs.mapping(job)
    ).state
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


def test_the_largest_job_with_every_third_task_failing_keeps_its_status_below_32_kib():
    job = mrjobs.job()
    state = mrjobs.mapping(job, splits=spec.MAX_MAPS)
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


def foreign_status(**changes):
    """Return the status of a job of three maps of which one has succeeded, with changes of somebody else."""
    job = mrjobs.job()
    state = mrjobs.desired(
        job, mrjobs.succeeded_pod("m-0"), mrjobs.attempt_pod("m-1", 2), state=mrjobs.mapping(job)
    ).state
    return json.loads(json.dumps(stripped(job_state.to_status(state)))) | changes


CONDITION = {"type": "Quiesced", "status": "True", "reason": "New", "lastTransitionTime": "2026-01-01T00:00:00Z"}
BOMB = base64.b64encode(bomb(200, ZLIB)).decode()


@pytest.mark.parametrize(
    "changes",
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
    ids=lambda changes: next(iter(changes)),
)
def test_a_field_of_a_status_that_cannot_be_read_costs_no_other_field(changes):
    read = job_state.from_status(foreign_status(**changes), reduces=1)
    maps = read.stages[TaskType.MAP]
    assert (maps.winner, maps.last[1], read.plan.splits) == ([1, 0, 0], 2, 3)
    assert not read.finished
    assert job_state.to_status(read)["plan"]["splits"] == 3


def test_an_unknown_phase_is_derived_again():
    read = job_state.from_status(foreign_status(phase="Rebalancing"), reduces=1)
    assert mrjobs.desired(mrjobs.job(), state=read).state.phase == "Map"


def test_a_condition_of_another_version_is_kept():
    read = job_state.from_status(foreign_status(conditions=[CONDITION]), reduces=1)
    kept = mrjobs.desired(mrjobs.job(), state=read).state.conditions
    assert [condition.type for condition in kept] == ["Admitted", "Scheduled", "Running", "Quiesced"]


@pytest.mark.parametrize("splits", [-1, spec.MAX_MAPS + 1, 10**15])
def test_a_plan_that_no_job_can_have_is_none(splits):
    status = foreign_status()
    status["plan"]["splits"] = splits
    assert job_state.from_status(status, reduces=1).plan is None


@pytest.mark.parametrize("text", [BOMB, "not base64!", base64.b64encode(b"no zlib").decode()], ids=["bomb", "x", "raw"])
def test_arrays_that_are_no_arrays_take_no_memory_and_count_for_nothing(text):
    status = foreign_status()
    status["attempts"]["map"]["killed"] = text
    read = job_state.from_status(status, reduces=1)
    assert read.stages[TaskType.MAP].killed == [0, 0, 0]
    assert read.stages[TaskType.MAP].last[1] == 2


def test_fields_inside_the_attempts_are_cleared_too():
    assert job_state.to_status(mrjobs.mapping(mrjobs.job()))["attempts"]["map"] is None
