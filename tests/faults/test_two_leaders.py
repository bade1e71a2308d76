"""A leader stands still past its Lease and wakes beside its successor: what it still had in hand is refused."""

from __future__ import annotations

import random
import signal

import pytest

from boathouse_e2e import lab
from boathouse_e2e.kubelets import Shape

pytestmark = pytest.mark.apiserver

RUNS = 20
SHORT_LEASE = {"duration_s": 8.0, "renew_deadline_s": 6.5, "retry_s": 0.4}  # a successor that is held up still renews


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed == 0 else pytest.mark.long) for seed in range(RUNS)]
)
async def test_a_leader_that_wakes_beside_its_successor_changes_nothing(trial, seed):
    rng = random.Random(seed)
    shape = Shape(maps=rng.randint(10, 40), reduces=rng.randint(0, 4))
    done = max(1, rng.randint(0, shape.maps - 1))  # so that the first has led
    first, second = lab.IDENTITIES
    with trial.operator(first, **SHORT_LEASE) as paused, trial.operator(second, **SHORT_LEASE) as successor:
        paused.start()
        await trial.submit(shape, pauses=True)
        await trial.until(lambda: trial.ledger.committed("m") >= done, "some maps are done")
        epoch = await trial.epoch()
        paused.send(signal.SIGSTOP)
        successor.start()

        async def succeeded() -> bool:
            return await trial.epoch() > epoch

        await trial.until(succeeded, "the successor leads")
        trial.let_end(paused)
        paused.send(signal.SIGCONT)
        await trial.judge()
        await trial.until(lambda: not paused.lives, "the former leader has ended")
        assert "Traceback" not in paused.log.read_text()
