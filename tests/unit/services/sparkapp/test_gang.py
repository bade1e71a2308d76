"""A driver and the minimum of its executors in a cycle of the scheduler."""

import pytest

from boathouse.resources import config
from boathouse.services.sparkapp import gang
from boathouse_policies import model, profiles, run_times
from tests.builders import core
from tests.builders.sparkapps import app, submission

PROFILES = config.PROFILES


def queued_world(nodes, *applications, profile="fair"):
    """Return a scheduler with these applications waiting, each with its whole gang."""
    world = core.Shell(core.nodes(nodes, core.amount(4000, 16, disk_gib=100)), profile=profiles.build(profile))
    for application in applications:
        found = gang.of(application, 1, minimum=application.minimum)
        world.queue.submit(found.job, [found.driver, found.executor], found.tasks)
    return world


def created_tasks(plan):
    return [decision.task.id for decision in plan.decisions if isinstance(decision, model.Create)]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_driver_starts_when_its_minimum_has_room_beside_it(profile):
    three, four = app(executor={"instances": 3}), app(executor={"instances": 4})
    assert created_tasks(queued_world(1, three, profile=profile).plan()) == ["team/pi-0a1b2c3d-a1-driver"]
    assert created_tasks(queued_world(1, four, profile=profile).plan()) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_of_two_applications_that_do_not_fit_together_one_starts_whole(profile):
    pair = [app(name=name, uid=f"{name * 8}-0-0-0-0", executor={"instances": 2}) for name in "ab"]
    world = queued_world(1, *pair, profile=profile)
    assert len(created_tasks(world.cycle())) == 1
    assert created_tasks(world.cycle()) == []


def test_an_application_without_a_minimum_starts_alone():
    elastic = app(dynamicAllocation={"enabled": True})
    found = gang.of(elastic, 1, minimum=elastic.minimum)
    assert len(found.tasks) == 1
    assert created_tasks(queued_world(1, elastic).plan()) == ["team/pi-0a1b2c3d-a1-driver"]


def test_a_driver_that_runs_is_submitted_with_all_of_its_minimum():
    found = gang.of(app(executor={"instances": 3}), 1, minimum=3)
    assert [task.expected for task in found.tasks] == [False, True, True, True]
    assert found.executor.gang_min == 3


def test_a_class_has_the_resources_and_the_constraints_of_the_pods():
    spec = {
        "driver": {"memory": "2g", "extendedResources": {"example.com/fpga": 1}, "nodeSelector": {"role": "driver"}},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spark", "operator": "Exists"}, {"operator": "Exists"}],
        "volumes": [{"name": "v", "mountPath": "/v", "claimName": "b"}],
        "storage": {"volume": {"claimName": "a"}},
    }
    found = gang.of(app(**spec), 1, minimum=0).driver
    manifest = submission(app(**spec)).driver["spec"]
    assert found.resources.memory_bytes == 2867 * 1024**2
    assert found.resources.extended == (("example.com/fpga", 1),)
    assert dict(found.constraints.node_selector) == manifest["nodeSelector"] == {"disk": "ssd", "role": "driver"}
    assert found.constraints.claims == ("team/a", "team/b")
    assert [toleration.key for toleration in found.constraints.tolerations] == [
        toleration.get("key", "") for toleration in manifest["tolerations"]
    ]
    assert "" in [toleration.key for toleration in found.constraints.tolerations]  # tolerates all


def test_driver_and_executors_request_what_spark_would_where_a_field_says_something_else():
    def role(name):
        return {f"spark.{name}.resource.gpu.amount": "2", f"spark.{name}.resource.gpu.vendor": "example.com"}

    field = {"extendedResources": {"example.com/gpu": 1, "example.com/fpga": 3}}
    found = app(driver=field, executor=field, sparkConf=role("driver") | role("executor"))
    both = gang.of(found, 1, minimum=1)
    expected = (("example.com/fpga", 3), ("example.com/gpu", 2))
    assert both.driver.resources.extended == both.executor.resources.extended == expected


def elastic_world(*nodes, least="1g"):
    """Return a scheduler with a pending application whose program ran for 100 s with all its memory."""
    found = app(executor={"memory": "4g", "instances": 2, "elasticMemory": {"min": least}})
    learner, stage = run_times.Learner(), gang.executor_stage(found)
    learner.learn(stage, seconds=100.0, input_bytes=0.0, less=False)
    pending = gang.of(found, 1, minimum=2, estimates=learner.estimates(stage, 0.0))
    world = core.Shell(
        [core.node(f"n{number}", core.amount(4000, gib, disk_gib=100)) for number, gib in enumerate(nodes)],
        profile=profiles.build("yarn-me"),
    )
    world.queue.submit(pending.job, [pending.driver, pending.executor], pending.tasks)
    tasks = {pending.driver.id: 1, pending.executor.id: 2}
    submitted = model.Submitted(now_s=0.0, job=pending.job, classes=(pending.driver, pending.executor), tasks=tasks)
    for observer in world.profile.observers:
        observer.observe(submitted)
    return world


def executor_sizes(plan):
    return [
        decision.resources.memory_bytes >> 20 for decision in plan.decisions if isinstance(decision, model.Reservation)
    ]


def test_all_executors_get_the_memory_that_fits_the_fullest_node():
    plan = elastic_world(8, 4).plan()
    assert created_tasks(plan) == ["team/pi-0a1b2c3d-a1-driver"]
    sizes = executor_sizes(plan)
    assert len(sizes) == 2
    assert sizes[0] == sizes[1] <= 4096


def test_executors_have_all_their_memory_where_it_fits():
    assert executor_sizes(elastic_world(8, 8).plan()) == [5734, 5734]


def test_executors_never_get_less_than_their_least():
    plan = elastic_world(8, 4, least="3g").plan()
    assert created_tasks(plan) == executor_sizes(plan) == []
