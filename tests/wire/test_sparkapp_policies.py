"""SparkApps under profiles whose policies follow drivers and executors."""

import pytest

from boathouse.resources import names, quantity
from boathouse.services.sparkapp import gang
from boathouse.services.sparkapp.model import from_resource
from boathouse_policies import model
from boathouse_policies.fspy import SizeBased
from tests.builders import manifests
from tests.builders.operators.sparkapps import RunningSparkApp, account, sparkapp


@pytest.fixture
async def world(api, request):
    api.add(account())
    api.add(manifests.node("n1", cpu="16", memory="14Gi"))
    async with RunningSparkApp(api, profile=request.param).running() as made:
        yield made


def running_tasks(world):
    return world.leader.profile.running.tasks.values()


@pytest.mark.parametrize("world", ["ikayak"], indirect=True)
async def test_ikayak_knows_the_share_of_spark(api, world, eventually):
    world.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: sum(task.started_s is not None for task in running_tasks(world)) == 3)
    (suspension,) = world.leader.profile.controllers
    assert suspension.delay_factor(world.leader.scheduling.scheduler.state.ledger.snapshot(0.0)) == 1.0
    world.nodes.end(world.driver())
    await eventually(lambda: not running_tasks(world) and world.phase() == "Succeeded")


@pytest.mark.parametrize("world", ["ikayak"], indirect=True)
async def test_a_new_leader_knows_the_executors_that_run(api, world, eventually):
    world.nodes.scripts[0].ends = False
    api.add(sparkapp())
    await eventually(lambda: len(running_tasks(world)) == 3)
    before = {task.task: task.node for task in running_tasks(world)}
    await world.restart()
    await eventually(lambda: {task.task: task.node for task in running_tasks(world)} == before)


@pytest.mark.parametrize("world", ["fspy"], indirect=True)
async def test_fspy_sizes_the_second_run_of_a_program_by_its_memory_seconds(api, world, eventually):
    api.add(sparkapp("first"))
    await eventually(lambda: world.phase("demo/first") == "Succeeded")
    (order,) = (observer for observer in world.leader.profile.observers if isinstance(observer, SizeBased))
    world.nodes.scripts[0].ends = False
    api.add(sparkapp("second"))
    await eventually(lambda: world.phase("demo/second") == "Running")
    prediction = order.prediction(model.JobId(api.get("sparkapps", "demo/second")["metadata"]["uid"]))
    assert prediction.byte_seconds > 0


ELASTIC = {"executor": {"memory": "4g", "elasticMemory": {"min": "1g"}}}


def fill(api, memory):
    """Put another pod on the node."""
    api.add(manifests.pod("filler", namespace="other", cpu="100m", memory=memory, node="n1", phase="Running"))


def teach(world, seconds=100.0):
    """Let the program have run with all its memory."""
    found = from_resource(
        {"metadata": {"name": "x", "namespace": "demo", "uid": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}}
        | {"spec": sparkapp(**ELASTIC)["spec"]},
        world.config,
    )
    world.kind.learner.learn(gang.executor_stage(found), seconds=seconds, input_bytes=0.0, less=False)


@pytest.mark.parametrize("world", ["yarn-me", "boathouse"], indirect=True)
async def test_executors_get_less_memory_where_all_of_it_does_not_fit(api, world, eventually):
    teach(world)
    fill(api, "6Gi")
    world.nodes.scripts[0].ends = False
    api.add(sparkapp(**ELASTIC))
    await eventually(lambda: world.status().get("executors", {}).get("running") == 2)
    pod = api.get("pods", world.driver())
    chosen = int(pod["metadata"]["annotations"][names.ANNOTATION_EXECUTOR_MEMORY])
    heap = pod["spec"]["containers"][0]["args"][4]
    assert heap.startswith("spark.executor.memory=")
    assert chosen < 5734 * 1024**2
    assert world.status()["requests"]["executor"]["memory"] == quantity.format_bytes(chosen)


@pytest.mark.parametrize("world", ["yarn-me", "boathouse"], indirect=True)
async def test_executors_of_which_the_minimum_fits_no_node_with_all_its_memory_start_with_less(api, world, eventually):
    api.change("nodes", "n1", {"status": {"allocatable": {"memory": "10Gi"}}})
    teach(world)
    world.nodes.scripts[0].ends = False
    api.add(sparkapp(**ELASTIC))
    await eventually(lambda: world.status().get("executors", {}).get("running") == 2)


@pytest.mark.parametrize("world", ["yarn-me"], indirect=True)
async def test_a_new_leader_expects_executors_of_the_chosen_size(api, world, eventually):
    teach(world)
    fill(api, "6Gi")
    world.nodes.scripts[0].ends, world.nodes.scripts[0].executors = False, 0
    api.add(sparkapp(**ELASTIC))
    await eventually(lambda: world.phase() == "Running")
    before = reserved(world)
    assert len(before) == 2
    await world.restart()
    await eventually(lambda: reserved(world) == before)


def reserved(world):
    state = world.leader.scheduling.scheduler.state
    entry = state.jobs.entry(model.JobId(world.uid()))
    rows = [state.pods.get(task) for task in entry.gang.expected] if entry and entry.gang else []
    return [(row.id, row.reserved.resources.memory_bytes) for row in rows if row and row.reserved]
