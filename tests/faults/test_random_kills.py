"""The operator dies by SIGKILL at random moments, again and again, until its job is done."""

from __future__ import annotations

import asyncio
import random

import pytest

from boathouse_e2e.kubelets import Shape

pytestmark = pytest.mark.apiserver

RUNS = 50
KILLS = 4
LIFE_S = (1.5, 4.0)  # a life begins with about 2 s of imports, lists and settling


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed == 0 else pytest.mark.long) for seed in range(RUNS)]
)
async def test_a_job_survives_an_operator_that_dies_again_and_again(trial, seed, record_property):
    rng = random.Random(seed)
    await trial.submit(Shape(maps=rng.randint(5, 40), reduces=rng.randint(0, 5)), pauses=True)
    with trial.operator() as operator:
        for _ in range(KILLS):
            operator.start()
            await asyncio.sleep(rng.uniform(*LIFE_S))
            operator.kill()
        record_property("kills", KILLS)
        operator.start()
        await trial.judge()
