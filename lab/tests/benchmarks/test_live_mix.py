"""The live comparison: its workload has the load that it states, and its nodes slow tasks down as the simulator's."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

import pytest

from benchmarks import mix_workload, modelled_nodes, partial_operator
from boathouse_lab.board import mix as mix_shapes
from boathouse_sim.live.rates import Activity, Gate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SHAPE = mix_shapes.Shape(submit_s=240)


@functools.cache
def mix(seed: int = 1) -> mix_workload.Mix:
    return mix_workload.mix(seed, SHAPE)


def test_jobs_and_applications_use_the_given_share_of_memory() -> None:
    subject = mix()
    jobs = sum(
        phase.tasks * phase.mem_ideal_mb * phase.duration_ms / 1000 for job in subject.jobs for phase in job.spec.phases
    )
    apps = sum(
        arrival.application.work.seconds * arrival.application.work.memory_mib for arrival in subject.applications
    )
    assert (jobs + apps) / SHAPE.memory_mb_s == pytest.approx(0.9, rel=0.01)


def test_memory_is_scarcer_than_cpu() -> None:
    assert all(mix(seed).cpu_load < 0.8 for seed in (1, 2))


def test_tasks_do_what_the_model_of_the_trace_says() -> None:
    for job in mix().jobs:
        assert job.map.work_ms == pytest.approx(job.spec.phases[0].duration_ms, abs=3)
        assert job.reduce is None or job.reduce.work_ms == pytest.approx(job.spec.phases[1].duration_ms, rel=0.2)


def test_the_least_mean_time_is_that_of_each_alone() -> None:
    subject = mix()
    longest = max(
        arrival.application.work.seconds / arrival.application.work.executors for arrival in subject.applications
    )
    shortest = min(job.spec.phases[0].duration_ms / 1000 for job in subject.jobs)
    assert shortest < subject.alone_s < longest


def test_a_seed_gives_the_same_workload_again() -> None:
    assert mix.__wrapped__(1) == mix(1) != mix(2)


@pytest.fixture
async def modelled() -> AsyncIterator[modelled_nodes.Nodes]:
    subject = modelled_nodes.Nodes(["a", "b"], cores=8)
    running = asyncio.create_task(subject.run())
    yield subject
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def begin(
    modelled: modelled_nodes.Nodes, node: str, gate: Gate | None = None, work_ms: float = 100
) -> tuple[modelled_nodes.Running, Activity, asyncio.Event]:
    """Start to compute."""
    pod, ended = modelled_nodes.Running(node=node, namespace="demo", name="pod"), asyncio.Event()
    activity = Activity(node, work_ms, (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), ended.set, gate=gate)
    modelled.add(pod)
    modelled.start(pod, activity)
    return pod, activity, ended


async def test_neighbours_slow_tasks_down(modelled: modelled_nodes.Nodes) -> None:
    crowd, *_ = [begin(modelled, "a", work_ms=1e6)[1] for _ in range(8)]
    few = begin(modelled, "b", work_ms=1e6)[1]
    few_ms, crowd_ms = modelled.left_ms(few), modelled.left_ms(crowd)
    await begin(modelled, "b")[2].wait()
    assert crowd_ms - modelled.left_ms(crowd) < few_ms - modelled.left_ms(few)


async def test_a_copy_ends_after_the_last_map(modelled: modelled_nodes.Nodes) -> None:
    gate = Gate(1)
    pod, _, ended = begin(modelled, "a", gate)
    await begin(modelled, "b")[2].wait()  # as much work without a gate
    assert not ended.is_set()
    modelled.mapped(gate, [pod])
    await ended.wait()


async def test_a_paused_task_does_not_go_on(modelled: modelled_nodes.Nodes) -> None:
    pod, activity, ended = begin(modelled, "a")
    modelled.change(pod, lambda running: setattr(running, "paused", True))
    await begin(modelled, "b")[2].wait()  # as much work that is not paused
    assert modelled.left_ms(activity) > 0
    modelled.change(pod, lambda running: setattr(running, "paused", False))
    await ended.wait()


@pytest.mark.parametrize("part", partial_operator.PARTS)
def test_a_profile_without_a_part_is_still_the_profile_boathouse(part: str) -> None:
    assert partial_operator.build(part).name == "boathouse"
