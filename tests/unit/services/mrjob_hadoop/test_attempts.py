"""Attempts beside a model of what can go wrong: never do two applications of a job run."""

from __future__ import annotations

import pytest

from boathouse.services.mrjob.hadoop import client_pod  # noqa: F401 - imported before failpoints are replaced
from tests.unit.services.mrjob_hadoop.world import World

WRITES = ("tags", "kill-application", "submit")
FAILPOINTS = (*(f"{moment}-mrjob.{write}" for write in WRITES for moment in ("before", "after")), "after-mrjob.status")
STEPS = 150
JAR = {"jar": {"url": "local:///opt/job.jar"}}


async def run(world: World, steps: int = STEPS) -> None:
    for _ in range(steps):
        world.happen()
        world.check()
        dies_at = world.random.choice(FAILPOINTS) if world.random.random() < 0.1 else ""
        await world.live(dies_at=dies_at)
        world.check()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("more", [{}, JAR], ids=["streaming", "jar"])
async def test_whatever_happens_one_application_runs_and_the_job_ends(seed: int, more: dict[str, object]) -> None:
    world = World(seed, **more)
    await run(world)
    await world.settle()
    assert world.status["phase"] in {"Succeeded", "Failed"}, world.status


@pytest.mark.parametrize("seed", range(12))
async def test_a_job_that_is_suspended_and_resumed_again_and_again_does_not_run_twice(seed: int) -> None:
    world = World(seed)
    for _ in range(6):
        await run(world, 25)
        world.suspend = not world.suspend
    assert not world.suspend
    await world.settle()
    assert world.status["phase"] == "Succeeded"


@pytest.mark.parametrize("seed", range(12))
async def test_a_deleted_job_leaves_no_application(seed: int) -> None:
    world = World(seed)
    await run(world, 60)
    world.deleting_since_s = world.now_s
    await world.settle()
    assert world.is_gone
    assert not world.running


async def settled_attempt(world: World, number: int) -> None:
    """Let the job go on until the client of an attempt has submitted."""
    for _ in range(60):
        await world.live()
        world.scheduler.create()
        for client in world.processes:
            if client.attempt == number:
                world.ask_leave(client)
                world.submit(client)
        world.report()
        world.now_s += 3
        if len(world.running) == 1:
            return
    raise AssertionError(world.status)


async def test_an_application_of_a_client_whose_pod_was_deleted_by_force_is_killed() -> None:
    world = World()
    await world.reconcile()
    await world.reconcile()
    world.scheduler.create()
    (late,) = world.processes
    world.ask_leave(late)
    assert late.has_leave
    world.over.add(late.attempt)
    world.pods.clear()  # its process lives on, on a node that does not respond
    await settled_attempt(world, 2)
    world.submit(late)
    for _ in range(3):
        world.report()
        await world.reconcile()
    assert world.kills == ["application_1_2"]
    assert world.running == ["application_1_1"]
