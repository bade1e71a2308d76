"""Jobs of several steps, and steps in one pod."""

import dataclasses

import pytest

from boathouse.resources.names import ConditionType
from boathouse.services.mrjob import job_state, pod_builder
from boathouse.services.mrjob.planning import steps
from boathouse_task.contract import TaskResult, TaskType
from tests.builders import mrjobs

STAGE = {"command": ["./stage.py"]}
MAP_REDUCE = {"mapper": STAGE, "reducer": STAGE}


def job_of_steps(*steps, **spec):
    return mrjobs.job(mapper=None, reducer=None, steps=list(steps), **spec)


def after_first_step(job):
    """Plan a job whose first step, of one map and one reduce, has just ended."""
    reducing = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), state=mrjobs.mapping(job, splits=1)).state
    return mrjobs.desired(job, mrjobs.succeeded_pod("r-0", counters={"g": {"n": 2}}), state=reducing)


def test_the_next_step_begins_with_a_setup_of_its_own():
    job = job_of_steps(MAP_REDUCE, MAP_REDUCE)
    ended = after_first_step(job)
    assert (ended.state.step, ended.state.plan, ended.state.phase) == (1, None, "Setup")
    assert ended.recheck_at_s == mrjobs.CREATED_S + 1000
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=ended.state)) == ["1/setup-a1"]


def test_pods_of_an_earlier_step_are_ignored_and_deleted():
    job = job_of_steps(MAP_REDUCE, MAP_REDUCE)
    slow = mrjobs.attempt_pod("0/m-0", 2)
    desired = mrjobs.desired(job, mrjobs.succeeded_pod("0/setup", digest="d1"), slow, state=after_first_step(job).state)
    assert (desired.state.plan, desired.write_plan, desired.delete) == (None, False, [slow])


def test_the_last_step_ends_with_the_commit():
    job = job_of_steps(MAP_REDUCE, {"mapper": STAGE})
    second = mrjobs.desired(job, stored=mrjobs.plan_status(1), state=after_first_step(job).state).state
    done = mrjobs.desired(job, mrjobs.succeeded_pod("1/m-0"), state=second).state
    assert (done.step, done.phase) == (1, "Commit")
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=done)) == ["1/commit-a1"]


def test_a_map_only_step_in_the_middle_leads_to_the_next():
    job = job_of_steps({"mapper": STAGE}, MAP_REDUCE)
    ended = mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), state=mrjobs.mapping(job, splits=1))
    assert (ended.state.step, ended.state.phase) == (1, "Setup")


def test_counters_are_summed_over_the_steps():
    job = job_of_steps(MAP_REDUCE, MAP_REDUCE)
    second = mrjobs.desired(job, stored=mrjobs.plan_status(1), state=after_first_step(job).state).state
    done = mrjobs.desired(job, mrjobs.succeeded_pod("1/m-0", counters={"g": {"n": 3}}), state=second).state
    assert done.counters == {"g": {"n": 5}}


def test_failures_of_earlier_steps_stay_in_the_status_and_do_not_count_against_the_next():
    job = job_of_steps({"mapper": STAGE | {"maxAttempts": 2}}, {"mapper": STAGE | {"maxAttempts": 2}})
    failed = mrjobs.desired(job, mrjobs.failed_pod("m-0"), state=mrjobs.mapping(job, splits=1)).state
    second = mrjobs.desired(job, mrjobs.failed_pod("m-0"), mrjobs.succeeded_pod("m-0", 2), state=failed).state
    wire = job_state.to_status(second)
    assert (second.step, wire["failures"]) == (1, {"user": 1, "infrastructure": 0})
    mapping = mrjobs.desired(job, stored=mrjobs.plan_status(1), state=job_state.from_status(wire, reduces=0)).state
    again = mrjobs.desired(job, mrjobs.failed_pod("1/m-0"), state=mapping).state
    assert (again.phase, job_state.to_status(again)["failures"]["user"]) == ("Map", 2)
    assert [(failure["step"], failure["task"]) for failure in job_state.to_status(again)["lastFailures"]] == [
        (0, "m-00000"),
        (1, "m-00000"),
    ]


@pytest.mark.parametrize("splits", [1, 3])
def test_the_state_in_the_middle_of_a_job_survives_a_restart(splits):
    job = job_of_steps(MAP_REDUCE, MAP_REDUCE)
    second = mrjobs.desired(job, stored=mrjobs.plan_status(splits), state=after_first_step(job).state).state
    wire = job_state.to_status(second)
    assert (wire["currentStep"], wire["steps"], wire["progress"]) == (1, 2, f"step 2/2, maps 0/{splits}, reduces 0/1")
    assert job_state.to_status(job_state.from_status(wire, reduces=1)) == wire


def test_a_small_step_runs_in_one_pod_that_also_commits():
    job = mrjobs.job(uber={})
    mapping = mrjobs.desired(job, stored=mrjobs.plan_status(3)).state
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=mapping)) == ["uber-a1"]
    done = mrjobs.desired(job, mrjobs.succeeded_pod("uber", counters={"g": {"n": 1}}), state=mapping).state
    assert (done.phase, done.counters) == ("Succeeded", {"g": {"n": 1}})
    assert done.condition(ConditionType.SUCCEEDED).status == "True"
    assert job_state.to_status(job_state.from_status(job_state.to_status(done), reduces=1)) == job_state.to_status(done)


def test_an_uber_step_before_the_last_leads_to_the_next_setup():
    job = job_of_steps(MAP_REDUCE, MAP_REDUCE, uber={})
    mapping = mrjobs.desired(job, stored=mrjobs.plan_status(3)).state
    after = mrjobs.desired(job, mrjobs.succeeded_pod("uber"), state=mapping).state
    assert (after.step, after.phase) == (1, "Setup")
    assert mrjobs.pending_attempts(mrjobs.desired(job, state=after)) == ["1/setup-a1"]


@pytest.mark.parametrize(
    ("limits", "small"),
    [
        ({}, True),
        ({"maxMaps": 3}, True),
        ({"maxMaps": 2}, False),
        ({"maxReduces": 1}, False),
        ({"maxReduces": 2}, True),
        ({"maxBytes": "99"}, False),
        ({"maxBytes": 100}, True),
    ],
)
def test_a_step_beyond_a_limit_is_not_run_in_one_pod(limits, small):
    job = mrjobs.job(uber={"maxReduces": 2} | limits, numReduceTasks=2)
    stages = {attempt.task_type for attempt in mrjobs.desired(job, stored=mrjobs.plan_status(3)).waiting}
    assert stages == {TaskType.UBER if small else TaskType.MAP}


def test_an_uber_pod_has_room_for_both_mapper_and_reducer():
    mapper = STAGE | {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    reducer = STAGE | {"resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    resources = mrjobs.job(uber={}, mapper=mapper, reducer=reducer).stage(TaskType.UBER).resources
    assert (resources.cpu_milli, resources.memory_bytes) == (2000, 2 << 30)


def test_a_step_without_mapper_passes_lines_in_tasks_with_the_reducers_resources():
    reducer = STAGE | {"resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
    (step,) = mrjobs.job(mapper=None, reducer=reducer).steps
    assert (step.mapper.command, step.mapper.resources.cpu_milli) == ((), 250)


def test_key_fields_reach_the_runtime():
    job = mrjobs.job(
        mapOutputFieldSeparator=",",
        numMapOutputKeyFields=2,
        mapOutputKeyFieldSeparator=".",
        partitioner={"type": "KeyFieldBasedPartitioner", "options": "-k1,1"},
        comparator={"options": "-k2,2nr"},
    )
    partitioner = job.steps[0].partitioner
    assert (partitioner.field_separator, partitioner.num_key_fields, partitioner.key_field_separator) == (",", 2, ".")
    assert (partitioner.options, partitioner.comparator_options) == ("-k1,1", "-k2,2nr")


def test_a_pods_name_has_its_step():
    attempts = mrjobs.attempt(index=7, number=2, step=3), mrjobs.attempt(TaskType.UBER, step=1)
    names = [pod_builder.pod_name(mrjobs.job(), attempt) for attempt in attempts]
    assert [name.rpartition("-s")[2] for name in names] == ["3-m-00007-a2", "1-uber-a1"]


def test_a_later_setup_reads_what_the_step_before_wrote():
    job = job_of_steps(MAP_REDUCE | {"numReduceTasks": 4}, MAP_REDUCE)
    builder = pod_builder.PodBuilder(job=job, settings=mrjobs.SETTINGS)
    spec = builder.task_spec(mrjobs.attempt(TaskType.SETUP, step=1))
    assert (spec.step, spec.steps, spec.previous_reduces, spec.input_urls) == (1, 2, 4, [])


def test_a_volume_is_mounted_where_the_job_says():
    storage = {"volume": {"claimName": "books", "mountPath": "/books"}}
    job = mrjobs.job(storage=storage, input=["file:///books/in"], output="file:///books/out")
    spec = mrjobs.task_manifest(job, TaskType.SETUP)["spec"]
    assert {"name": "storage", "persistentVolumeClaim": {"claimName": "books"}} in spec["volumes"]
    assert {"name": "storage", "mountPath": "/books"} in spec["containers"][0]["volumeMounts"]


def test_pods_that_are_labelled_as_tasks_that_the_job_does_not_have_are_left_out():
    job = mrjobs.job()
    state = mrjobs.mapping(job, splits=3)
    pods = [mrjobs.attempt_pod(name) for name in ("m-2", "m-3", "1/m-0", "r-0", "r-1", "setup")]
    assert [pod.task_name for pod in steps.existing(pods, state, job)] == ["m-00002", "r-00000", "setup"]


def test_the_plan_of_a_step_is_the_one_of_which_its_setup_pods_say_the_digest():
    setup = mrjobs.succeeded_pod("setup")
    results = [TaskResult(outcome="succeeded", digest=digest) for digest in ("", "d")]
    pods = [dataclasses.replace(setup, result=result) for result in (None, *results)]
    assert (steps.owned_digests(pods, setup.step), steps.owned_digests(pods, setup.step + 1)) == ({"d"}, set())
