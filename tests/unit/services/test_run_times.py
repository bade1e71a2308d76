"""Run times of tasks, learned from those that succeeded."""

import pytest

from boathouse_policies import model, run_times
from boathouse_policies.run_times import learner
from boathouse_policies.yarn_me import penalty
from boathouse_task import environment, reduce_task
from tests.builders import mrjobs


@pytest.fixture
def elastic_job():
    stage = {
        "command": ["cat"],
        "resources": {"requests": {"memory": "512Mi"}},
        "elasticMemory": {"min": "128Mi", "slowdownPercent": 50},
    }
    return mrjobs.job(mapper=stage)


def learner_of(job, *runs):
    found = run_times.Learner()
    for seconds, less in runs:
        found.learn(mrjobs.map_program(job), seconds=seconds, input_bytes=100, less=less)
    return found


def test_a_program_that_never_ran_has_no_estimates(elastic_job):
    assert run_times.Learner().estimates(mrjobs.map_program(elastic_job), 100) is model.UNKNOWN


def test_a_program_that_ran_may_be_given_less_memory_down_to_what_its_job_says(elastic_job):
    estimates = learner_of(elastic_job, (10, False)).estimates(mrjobs.map_program(elastic_job), 100)
    assert isinstance(estimates, penalty.Elastic)
    assert (estimates.run(estimates.ideal_bytes)[0], estimates.run(estimates.least_bytes)[0]) == (10, 15)
    assert estimates.least_bytes >= 127 << 20


def test_time_grows_with_the_input_and_the_slowdown_is_measured(elastic_job):
    estimates = learner_of(elastic_job, (10, False), (30, True)).estimates(mrjobs.map_program(elastic_job), 200)
    assert (estimates.run(estimates.ideal_bytes)[0], estimates.run(estimates.least_bytes)[0]) == (15, 45)


def test_a_stage_whose_task_was_killed_for_want_of_memory_gets_no_less(elastic_job):
    found = learner_of(elastic_job, (10, False))
    found.out_of_memory(mrjobs.map_program(elastic_job))
    assert not isinstance(found.estimates(mrjobs.map_program(elastic_job), 100), penalty.Elastic)


def test_the_estimates_are_the_same_object_while_nothing_is_learned(elastic_job):
    found = learner_of(elastic_job, (10, False))
    assert found.estimates(mrjobs.map_program(elastic_job), 100) is found.estimates(
        mrjobs.map_program(elastic_job), 100
    )


def test_a_learner_is_restored_from_its_dump(elastic_job):
    loaded = run_times.Learner()
    loaded.load(learner_of(elastic_job, (10, False)).dump())
    size = model.Resources(cpu_milli=1000, memory_bytes=elastic_job.steps[0].mapper.resources.memory_request_bytes)
    assert loaded.estimates(mrjobs.map_program(elastic_job), 100).duration_s(size) == 10


def test_the_learner_knows_how_the_task_runtime_divides_its_memory():
    limit = 512 << 20
    merge_bytes = environment.Environment(memory_limit_bytes=limit).sort_bytes * (1 - reduce_task._MERGE_SHARE)
    assert learner.FIXED_BYTES == environment.RUNTIME_BYTES
    assert learner.BUFFER_SHARE * (limit - learner.FIXED_BYTES) == merge_bytes
