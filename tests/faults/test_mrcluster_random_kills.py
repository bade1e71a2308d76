"""The operator dies at random moments while a Hadoop cluster changes, loses nodes and runs jobs."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from boathouse.cluster import errors
from tests.faults import clusters

pytestmark = pytest.mark.apiserver

RUNS = 20
KILLS = 6
LIFE_S = (2.0, 8.0)  # a life begins with about 2 s of imports, lists and settling
SETTLED_WITHIN_S = 400


@pytest.fixture
async def trial(laboratory):
    async with clusters.trying(laboratory) as one:
        yield one


async def harm(trial, rng):
    """Change the cluster, or take something from it."""
    match rng.choice(["transient", "core", "settings", "lose", "load", "wait"]):
        case "transient":
            await trial.patch({"transient": {"minimum": rng.randint(0, 3)}})
        case "core":
            await trial.patch({"core": {"count": rng.randint(2, 3)}})
        case "settings":
            await trial.patch({"hdfs": {"settings": {"dfs.namenode.handler.count": str(rng.randint(10, 12))}}})
        case "lose":
            hosts = sorted(await trial.hosts())
            with contextlib.suppress(errors.NotFound, KeyError):  # it has left meanwhile
                await trial.kill_pod(rng.choice(hosts))
        case "load":
            trial.load(*(rng.uniform(0.5, 4.0) for _ in range(rng.randint(1, 20))))
        case "wait":
            await asyncio.sleep(rng.uniform(0, 2))


@pytest.mark.timeout(1200)
@pytest.mark.long
@pytest.mark.parametrize("seed", range(RUNS))
async def test_a_cluster_survives_an_operator_that_dies_again_and_again(trial, seed, record_property):
    rng = random.Random(seed)
    with trial.operator() as operator:
        await trial.start_cluster(transient={"minimum": 1, "maximum": 3})
        operator.start()
        await trial.until(trial.has(core=2, transient=1), "the cluster is ready")
        trial.write_blocks(20)
        job = await trial.submit_job()
        for _ in range(KILLS):
            await harm(trial, rng)
            await asyncio.sleep(rng.uniform(*LIFE_S))
            operator.kill()
            operator.start()
        record_property("kills", KILLS)
        await trial.patch({"core": {"count": 2}, "transient": {"minimum": 1}})
        await trial.until(trial.job_is(job, "Succeeded", "Failed"), "the job has ended", patience_s=SETTLED_WITHIN_S)
        assert await trial.job_is(job, "Succeeded")()
        await trial.until(trial.is_rolled_out, "all nodes have the settings", patience_s=SETTLED_WITHIN_S)
        await trial.judge_cluster(core=2, transient=1)
