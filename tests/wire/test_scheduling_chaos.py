"""Seeded random faults: at no moment is a node over-committed, and in the end every task has run exactly once."""

import asyncio
import contextlib
import random

import pytest

from tests.builders import manifests
from tests.builders.operators.schedulers import Leader, over_committed, scheduling
from tests.wire import fake_api, waiting

OF_READS = [fake_api.Fault(status=503), fake_api.Fault(reset=True), fake_api.Fault(delay_s=0.02)]
OF_WRITES = [
    *OF_READS,
    fake_api.Fault(status=409, reason="Conflict"),
    fake_api.Fault(status=429),
    fake_api.Fault(status=500, after_commit=True),
    fake_api.Fault(reset=True, after_commit=True),
]
HARM = {"create pods": OF_WRITES, "create pods/binding": OF_WRITES, "get pods": OF_READS}
SHARE = 0.2
TASKS, PODS, NODES = 12, 6, 3
SEEDS, AT_ONCE = 1000, 10


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
async def test_random_faults_never_over_commit_and_lose_nothing(seed):
    await survive(seed)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_so_do_a_thousand_seeds(first):
    async with asyncio.TaskGroup() as group:
        for seed in range(first, first + AT_ONCE):
            group.create_task(survive(seed), name=f"seed {seed}")


async def survive(seed):
    """One run: a leader is killed on its way, its successor ends the work."""
    rng = random.Random(seed)
    async with fake_api.FakeApi() as api:
        for i in range(NODES):
            api.add(manifests.node(f"n{i}", cpu="2"))
        api.chaos = lambda call: rng.choice(HARM[call.name]) if call.name in HARM and rng.random() < SHARE else None
        over: list[list[str]] = []
        api.refuse = lambda *_: over.append(over_committed(api))
        async with kubelets(api, rng):
            for life in (1, 2):
                async with scheduling(api, leader=Leader(epoch=life), watched=False, workers=4) as w:
                    w.submit("wc", TASKS)
                    for i in range(PODS if life == 1 else 0):
                        api.add(manifests.pod(f"p{i}", cpu="1"))
                    wanted = TASKS // 2 if life == 1 else TASKS + PODS
                    await waiting.eventually(lambda w=w, wanted=wanted: len(w.placed()) >= wanted)
                    assert not w.fatal, f"seed {seed}"
        assert not any(over), f"seed {seed}: a node was over-committed"
        assert not over_committed(api), f"seed {seed}"
        assert len(api.objects("pods")) == TASKS + PODS, f"seed {seed}"


@contextlib.asynccontextmanager
async def kubelets(api, rng):
    """Pods end after a moment, watches break, until the block ends."""
    work = asyncio.create_task(run_pods(api, rng))
    try:
        yield
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def run_pods(api, rng):
    while True:
        running = [
            key
            for key, pod in api.objects("pods").items()
            if pod["spec"].get("nodeName") and pod["status"]["phase"] not in {"Succeeded", "Failed"}
        ]
        if running and rng.random() < 0.7:
            api.end_pod(rng.choice(running))
        if rng.random() < 0.05:
            api.watches.cut("pods", mid_line=rng.random() < 0.5)
        if rng.random() < 0.05:
            api.watches.replay("pods", last=5)
        await asyncio.sleep(0.02)
