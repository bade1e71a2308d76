"""Jobs of several steps, and steps in one pod."""

import pytest

from boathouse.resources.names import ConditionType
from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.job import model
from boathouse.services.mrjob.placement import pod_builder
from boathouse.services.mrjob.planning import steps
from boathouse.services.mrjob.state import job_state
from boathouse_task.contract import TaskType

STAGE = {"command": ["./stage.py"]}
MAP_REDUCE = {"mapper": STAGE, "reducer": STAGE}


def stepped(build, *steps, **spec):
    return build.job(mapper=None, reducer=None, steps=list(steps), **spec)


def waiting(desired):
    return [(each.step, each.task_type.value, each.index, each.number) for each in desired.waiting]


def after_first(build, job):
    """The record of a job whose first step, of one map and one reduce, has just ended."""
    reducing = build.look(job, build.won("m-0"), state=build.mapping(job, splits=1)).state
    return build.look(job, build.won("r-0", counters={"g": {"n": 2}}), state=reducing)


def test_the_next_step_begins_with_a_setup_of_its_own(build):
    job = stepped(build, MAP_REDUCE, MAP_REDUCE)
    ended = after_first(build, job)
    assert (ended.state.step, ended.state.plan, ended.state.phase) == (1, None, "Setup")
    assert ended.recheck_at_s == build.CREATED_S + 1000
    assert waiting(build.look(job, state=ended.state)) == [(1, "setup", 0, 1)]


def test_pods_of_an_earlier_step_count_for_nothing_and_go(build):
    job = stepped(build, MAP_REDUCE, MAP_REDUCE)
    slow = build.pod("0/m-0", 2)
    desired = build.look(job, build.won("0/setup", digest="d1"), slow, state=after_first(build, job).state)
    assert (desired.state.plan, desired.write_plan, desired.delete) == (None, False, [slow])


def test_the_last_step_ends_with_the_commit(build):
    job = stepped(build, MAP_REDUCE, {"mapper": STAGE})
    second = build.look(job, stored=build.plan(1), state=after_first(build, job).state).state
    done = build.look(job, build.won("1/m-0"), state=second).state
    assert (done.step, done.phase) == (1, "Commit")
    assert waiting(build.look(job, state=done)) == [(1, "commit", 0, 1)]


def test_a_map_only_step_in_the_middle_leads_to_the_next(build):
    job = stepped(build, {"mapper": STAGE}, MAP_REDUCE)
    ended = build.look(job, build.won("m-0"), state=build.mapping(job, splits=1))
    assert (ended.state.step, ended.state.phase) == (1, "Setup")


def test_counters_are_summed_over_the_steps(build):
    job = stepped(build, MAP_REDUCE, MAP_REDUCE)
    second = build.look(job, stored=build.plan(1), state=after_first(build, job).state).state
    done = build.look(job, build.won("1/m-0", counters={"g": {"n": 3}}), state=second).state
    assert done.counters == {"g": {"n": 5}}


def test_failures_of_earlier_steps_stay_in_the_status_and_do_not_count_against_the_next(build):
    job = stepped(build, {"mapper": STAGE | {"maxAttempts": 2}}, {"mapper": STAGE | {"maxAttempts": 2}})
    failed = build.look(job, build.failed("m-0"), state=build.mapping(job, splits=1)).state
    second = build.look(job, build.failed("m-0"), build.won("m-0", 2), state=failed).state
    wire = job_state.to_status(second)
    assert (second.step, wire["failures"]) == (1, {"user": 1, "infrastructure": 0})
    mapping = build.look(job, stored=build.plan(1), state=job_state.from_status(wire, reduces=0)).state
    again = build.look(job, build.failed("1/m-0"), state=mapping).state
    assert (again.phase, job_state.to_status(again)["failures"]["user"]) == ("Map", 2)
    assert [(each["step"], each["task"]) for each in job_state.to_status(again)["lastFailures"]] == [
        (0, "m-00000"),
        (1, "m-00000"),
    ]


@pytest.mark.parametrize("splits", [1, 3])
def test_a_record_in_the_middle_of_a_job_survives_a_restart(build, splits):
    job = stepped(build, MAP_REDUCE, MAP_REDUCE)
    second = build.look(job, stored=build.plan(splits), state=after_first(build, job).state).state
    wire = job_state.to_status(second)
    assert (wire["currentStep"], wire["steps"], wire["progress"]) == (1, 2, f"step 2/2, maps 0/{splits}, reduces 0/1")
    assert job_state.to_status(job_state.from_status(wire, reduces=1)) == wire


def test_a_small_step_runs_in_one_pod_that_also_commits(build):
    job = build.job(uber={})
    mapping = build.look(job, stored=build.plan(3)).state
    assert waiting(build.look(job, state=mapping)) == [(0, "uber", 0, 1)]
    done = build.look(job, build.won("uber", counters={"g": {"n": 1}}), state=mapping).state
    assert (done.phase, done.counters) == ("Succeeded", {"g": {"n": 1}})
    assert done.condition(ConditionType.SUCCEEDED).status == "True"
    assert job_state.to_status(job_state.from_status(job_state.to_status(done), reduces=1)) == job_state.to_status(done)


def test_an_uber_step_before_the_last_leads_to_the_next_setup(build):
    job = stepped(build, MAP_REDUCE, MAP_REDUCE, uber={})
    mapping = build.look(job, stored=build.plan(3)).state
    after = build.look(job, build.won("uber"), state=mapping).state
    assert (after.step, after.phase) == (1, "Setup")
    assert waiting(build.look(job, state=after)) == [(1, "setup", 0, 1)]


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
def test_a_step_beyond_a_limit_is_not_run_in_one_pod(build, limits, small):
    job = build.job(uber={"maxReduces": 2} | limits, numReduceTasks=2)
    stages = {each.task_type for each in build.look(job, stored=build.plan(3)).waiting}
    assert stages == {TaskType.UBER if small else TaskType.MAP}


def test_an_uber_pod_has_room_for_both_mapper_and_reducer(build):
    mapper = STAGE | {"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    reducer = STAGE | {"resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    resources = build.job(uber={}, mapper=mapper, reducer=reducer).stage(TaskType.UBER).resources
    assert (resources.cpu_milli, resources.memory_bytes) == (2000, 2 << 30)


def test_a_step_without_mapper_passes_lines_in_tasks_with_the_reducers_resources(build):
    reducer = STAGE | {"resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}
    (step,) = build.job(mapper=None, reducer=reducer).steps
    assert (step.mapper.command, step.mapper.resources.cpu_milli) == ((), 250)


def test_key_fields_reach_the_runtime(build):
    job = build.job(
        mapOutputFieldSeparator=",",
        numMapOutputKeyFields=2,
        mapOutputKeyFieldSeparator=".",
        partitioner={"type": "KeyFieldBasedPartitioner", "options": "-k1,1"},
        comparator={"options": "-k2,2nr"},
    )
    asked = job.steps[0].partitioner
    assert (asked.field_separator, asked.num_key_fields, asked.key_field_separator) == (",", 2, ".")
    assert (asked.options, asked.comparator_options) == ("-k1,1", "-k2,2nr")


def test_a_pods_name_tells_its_step(build):
    attempts = (
        Attempt(step=3, task_type=TaskType.MAP, index=7, number=2),
        Attempt(step=1, task_type=TaskType.UBER, index=0, number=1),
    )
    names = [pod_builder.pod_name(build.job(), attempt) for attempt in attempts]
    assert [name.rpartition("-s")[2] for name in names] == ["3-m-00007-a2", "1-uber-a1"]


def test_a_later_setup_reads_what_the_step_before_wrote(build):
    job = stepped(build, MAP_REDUCE | {"numReduceTasks": 4}, MAP_REDUCE)
    settings = pod_builder.PodSettings(progress_url="https://progress", scratch_bytes=1)
    order = pod_builder.PodBuilder(job=job, settings=settings).task_spec(
        Attempt(step=1, task_type=TaskType.SETUP, index=0, number=1)
    )
    assert (order.step, order.steps, order.previous_reduces, order.input_urls) == (1, 2, 4, [])


def test_a_volume_is_mounted_where_the_job_says(build):
    storage = {"volume": {"claimName": "books", "mountPath": "/books"}}
    job = build.job(storage=storage, input=["file:///books/in"], output="file:///books/out")
    assert isinstance(job, model.Job)
    settings = pod_builder.PodSettings(progress_url="https://progress", scratch_bytes=1)
    attempt = Attempt(task_type=TaskType.SETUP, index=0, number=1)
    spec = pod_builder.PodBuilder(job=job, settings=settings).build(attempt, job.stage(TaskType.SETUP).resources, "n1")[
        "spec"
    ]
    assert {"name": "storage", "persistentVolumeClaim": {"claimName": "books"}} in spec["volumes"]
    assert {"name": "storage", "mountPath": "/books"} in spec["containers"][0]["volumeMounts"]


def test_pods_that_are_labelled_as_tasks_that_the_job_does_not_have_are_left_out(build):
    job = build.job()
    state = build.mapping(job, splits=3)
    pods = [build.pod(name) for name in ("m-2", "m-3", "1/m-0", "r-0", "r-1", "setup")]
    assert [pod.task_name for pod in steps.existing(pods, state, job)] == ["m-00002", "r-00000", "setup"]
