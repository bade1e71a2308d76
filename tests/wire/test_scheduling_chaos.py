"""Seeded random faults: at no moment is a node over-committed, and in the end every task has run exactly once."""

import asyncio
import random

import pytest

from tests.wire import fake_api
from tests.wire.scheduling_world import Leader, over_committed, world

FAULTS = [
    fake_api.Fault(status=409, reason="Conflict"),
    fake_api.Fault(status=500, after_commit=True),
    fake_api.Fault(status=503),
    fake_api.Fault(reset=True),
    fake_api.Fault(reset=True, after_commit=True),
    fake_api.Fault(delay_s=0.02),
]
TASKS, PODS, NODES = 24, 8, 4


@pytest.mark.parametrize("seed", range(6))
async def test_random_faults_never_over_commit_and_lose_nothing(api, eventually, seed):
    rng = random.Random(seed)
    for i in range(NODES):
        api.add(fake_api.node(f"n{i}", cpu="3"))
    api.chaos = lambda call: (
        rng.choice(FAULTS) if call.name in {"create pods", "create pods/binding"} and rng.random() < 0.25 else None
    )
    seen: list[list[str]] = []
    api.refuse = lambda *_: seen.append(over_committed(api))
    kubelets = asyncio.create_task(run_pods(api, rng))
    try:
        for life in (1, 2):  # the first is killed on its way
            async with world(api, leader=Leader(epoch=life), workers=4) as w:
                w.submit("wc", TASKS)
                for i in range(PODS if life == 1 else 0):
                    api.add(fake_api.pod(f"p{i}", namespace="demo", cpu="1"))
                wanted = TASKS // 2 if life == 1 else TASKS + PODS
                await eventually(lambda wanted=wanted: len(w.placed()) >= wanted, within_s=60)
    finally:
        kubelets.cancel()
    assert not any(seen), "a node was over-committed"
    assert not over_committed(api)
    assert len(api.objects("pods")) == TASKS + PODS
    assert not w.fatal


async def run_pods(api, rng):
    """Be the kubelets, and the network: pods end after a moment, watches break."""
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
