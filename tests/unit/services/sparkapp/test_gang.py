"""A driver and the minimum of its executors, in a cycle of the scheduler."""

import pytest

from boathouse.services.sparkapp.placement import gang
from boathouse.services.sparkapp.submission import objects
from boathouse_policies import model, profiles
from tests.unit.policies import builders as make
from tests.unit.services.sparkapp.builders import app

PROFILES = ["fair", "fifo", "fspy", "srjf", "yarn-me"]


def queued(nodes, *applications, profile="fair"):
    """A world with these applications waiting, each with its whole gang."""
    world = make.World(make.nodes(nodes, make.amount(4000, 16, disk_gib=100)), profile=profiles.build(profile))
    for each in applications:
        found = gang.of(each, 1, minimum=each.minimum)
        world.room.submit(found.job, [found.driver, found.executor], found.tasks)
    return world


def created(plan):
    return [each.task.id for each in plan.decisions if isinstance(each, model.Create)]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_driver_starts_when_its_minimum_has_room_beside_it(profile):
    three, four = app(executor={"instances": 3}), app(executor={"instances": 4})
    assert created(queued(1, three, profile=profile).plan()) == ["team/pi-0a1b2c3d-a1-driver"]
    assert created(queued(1, four, profile=profile).plan()) == []


@pytest.mark.parametrize("profile", PROFILES)
def test_of_two_applications_that_do_not_fit_together_one_starts_whole(profile):
    pair = [app(name=name, uid=f"{name * 8}-0-0-0-0", executor={"instances": 2}) for name in "ab"]
    world = queued(1, *pair, profile=profile)
    assert len(created(world.cycle())) == 1
    assert created(world.cycle()) == []


def test_an_application_without_a_minimum_starts_alone():
    elastic = app(dynamicAllocation={"enabled": True})
    found = gang.of(elastic, 1, minimum=elastic.minimum)
    assert len(found.tasks) == 1
    assert created(queued(1, elastic).plan()) == ["team/pi-0a1b2c3d-a1-driver"]


def test_a_driver_that_runs_is_submitted_with_all_of_its_minimum():
    found = gang.of(app(executor={"instances": 3}), 1, minimum=3)
    assert [each.expected for each in found.tasks] == [False, True, True, True]
    assert found.executor.gang_min == 3


def test_a_class_has_the_resources_and_the_constraints_of_the_pods():
    spec = {
        "driver": {"memory": "2g", "extendedResources": {"example.com/fpga": 1}, "nodeSelector": {"role": "driver"}},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spark", "operator": "Exists"}],
        "volumes": [{"name": "v", "mountPath": "/v", "claimName": "b"}],
        "storage": {"volume": {"claimName": "a"}},
    }
    found = gang.of(app(**spec), 1, minimum=0).driver
    manifest = objects.of(app(**spec), 1).driver["spec"]
    assert found.resources.memory_bytes == 2867 * 1024**2
    assert found.resources.extended == (("example.com/fpga", 1),)
    assert dict(found.constraints.node_selector) == manifest["nodeSelector"] == {"disk": "ssd", "role": "driver"}
    assert found.constraints.claims == ("team/a", "team/b")
    assert [each.key for each in found.constraints.tolerations] == ["spark"]
