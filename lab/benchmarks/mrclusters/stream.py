"""The paper's stream of jobs (Koala, VI.C) by policy: the operator with sleeping tasks, and the simulator.

The operator's nodes have 8 slots for all containers, ApplicationMasters included. Tasks sleep for as long as they take
alone, on core and transient nodes alike, and reduces start when all maps have ended. The simulator runs the same jobs
twice: "shared" is the study of the paper, with 6 map and 2 reduce slots, and nodes that share cores, disks and the link
of the transient nodes; "alone" is closer to the model, with 8 map slots and nothing shared.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import statistics
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.mrclusters import modelled_clusters, world
from boathouse_lab.koala import Hadoop
from boathouse_lab.koala.course import HadoopCourse
from boathouse_lab.reproduce.koala import setting
from boathouse_lab.reproduce.koala.case import Even
from boathouse_lab.reproduce.koala.setting import CORE, DISKS, POOL, Setting
from boathouse_policies import koala
from boathouse_policies.koala import Config, Policy
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import Live
from boathouse_sim.workload import Cluster, Workload

if TYPE_CHECKING:
    import argparse

    from boathouse_lab.koala import HadoopJob
    from boathouse_policies.model import FloatVector

LIMIT_S: Final = 4 * 3600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What became of a stream.

    Attributes:
        mean_s: Mean job time.
        makespan_s: From the first submission to the last end.
        extra_node_s: Seconds of nodes beyond the first ones, until the last end.
        most: The most nodes at a time.
    """

    mean_s: float
    makespan_s: float
    extra_node_s: float
    most: int


class Alone:
    """Nothing is shared."""

    def slowdown(self, load: FloatVector, capacity: FloatVector, streams: FloatVector) -> FloatVector:  # noqa: ARG002  the protocol's
        """Return 1 for everything."""
        slow: FloatVector = np.ones_like(load / capacity)
        return slow


def simulated(policy: str, setting_: Setting, seed: int, *, alone: bool) -> Course:
    """Run the simulator."""
    config = Config(policy=Policy(policy.lower()))
    setting_ = dataclasses.replace(setting_, map_slots=modelled_clusters.SLOTS) if alone else setting_
    workload = Workload(
        name=setting.PAPER,
        cluster=Cluster.of(setting.machines(CORE + POOL), (setting.link(),)),
        apps=(setting_.cluster(setting_.stream(seed)),),
        conditions=Conditions(contention=Alone() if alone else Even()),
    )
    driver = Live(workload, koala.build(config), seed=seed)
    while driver.advance():
        pass
    (run,) = driver.world.runs.values()
    course, spec = run.course, run.spec
    assert isinstance(course, HadoopCourse)
    assert isinstance(spec, Hadoop)
    end_ms = max(one.ended_ms for one in course.records)
    until_ms = [*(one.at_ms for one in course.sizes[1:]), end_ms]
    sizes = [one.core + one.transient for one in course.sizes]
    extra_ms = sum(
        max(0, size - CORE) * max(0, min(to_ms, end_ms) - one.at_ms)
        for size, one, to_ms in zip(sizes, course.sizes, until_ms, strict=True)
    )
    return Course(
        mean_s=statistics.fmean(one.time_s for one in course.records),
        makespan_s=(end_ms - min(one.submitted_ms for one in course.records)) / 1000,
        extra_node_s=extra_ms / 1000,
        most=max(sizes),
    )


def durations(job: HadoopJob, jitter: float, random: np.random.Generator) -> tuple[list[float], list[float]]:
    """Return the seconds of maps and reduces that run alone on a core node."""
    program, share_mb = job.program, job.share_mb
    output_mb = share_mb * program.output
    read_s = job.block_mb / DISKS.read_mb_per_s
    spill_s = job.block_mb * program.map_output / DISKS.write_mb_per_s
    around_s = share_mb / DISKS.copy_mb_per_s + share_mb / DISKS.read_mb_per_s + share_mb / DISKS.write_mb_per_s
    sigma = np.sqrt(np.log(1 + jitter**2))
    luck = random.lognormal(-(sigma**2) / 2, sigma, job.maps + job.reduces)
    map_s, reduce_s = (
        program.start_s + job.block_mb * program.map_s_per_mb,
        program.start_s + share_mb * program.reduce_s_per_mb,
    )
    maps = [float(max(map_s * one, read_s) + spill_s) for one in luck[: job.maps]]
    reduces = [float(reduce_s * one + around_s + output_mb / DISKS.write_mb_per_s) for one in luck[job.maps :]]
    return maps, reduces


async def live(policy: str, setting_: Setting, seed: int) -> Course:
    """Run the operator."""
    growing = {"GGDP": {"core_maximum": CORE + POOL}, "GSP": {"transient": POOL}, "GGP": {"transient": POOL}}
    body = world.manifest("stream", core=CORE, policy=policy, **growing.get(policy, {}))
    random = np.random.default_rng([seed, 11])
    async with world.running({"z": CORE + POOL}) as around:
        cluster = await around.create(body)
        yarn, began_s = cluster.hadoop.yarn, time.monotonic()
        cluster.busy = True
        for job in setting_.stream(seed):
            await asyncio.sleep(max(0.0, began_s + job.submit_ms / 1000 - time.monotonic()))
            maps, reduces = durations(job, setting_.jitter, random)
            yarn.submit(f"{job.id}-1", maps, time.monotonic(), later=reduces)
        applications = list(yarn.applications.values())
        await around.until(lambda: all(one.has_ended for one in applications), LIMIT_S, "all jobs have ended")
        if lost := sum(one.lost for one in applications):
            print(f"    {policy}: {lost} tasks were repeated", flush=True)
        return Course(
            mean_s=statistics.fmean(one.finished_s - one.started_s for one in applications),
            makespan_s=max(one.finished_s for one in applications) - min(one.started_s for one in applications),
            extra_node_s=cluster.extra_node_s,
            most=cluster.most,
        )


async def main(arguments: argparse.Namespace) -> None:
    """Run all policies on all seeds, and print their means."""
    setting_, policies = Setting(jobs=arguments.jobs), arguments.policies.split(",")
    found: dict[str, dict[str, list[Course]]] = {
        name: {policy: [] for policy in policies} for name in ("operator", "simulated, alone", "simulated, shared")
    }
    for seed in range(arguments.seeds):
        for policy in policies:
            used_s = time.process_time()
            course = await live(policy, setting_, seed)
            used_s = time.process_time() - used_s
            print(
                f"seed {seed}, {policy}: mean job time {course.mean_s:.1f} s, {course.extra_node_s:.0f} node-seconds; "
                f"{used_s:.0f} s of CPU",
                flush=True,
            )
            found["operator"][policy].append(course)
            found["simulated, alone"][policy].append(simulated(policy, setting_, seed, alone=True))
            found["simulated, shared"][policy].append(simulated(policy, setting_, seed, alone=False))
    _print(found, policies)
    print(f"load {os.getloadavg()[0]:.1f}")


def _print(found: dict[str, dict[str, list[Course]]], policies: list[str]) -> None:
    print(
        f"\n{'':19}{'policy':8}{'mean job time':>14}{'ratio':>7}{'makespan':>10}{'node-seconds':>14}{'most nodes':>12}"
    )
    for name, courses in found.items():
        base = statistics.fmean(one.mean_s for one in courses[policies[0]])
        for policy in policies:
            mean_s, makespan_s, extra_s = (
                statistics.fmean(getattr(one, field) for one in courses[policy])
                for field in ("mean_s", "makespan_s", "extra_node_s")
            )
            most = max(one.most for one in courses[policy])
            print(
                f"{name:19}{policy:8}{mean_s:12.1f} s{base / mean_s:7.2f}{makespan_s:8.0f} s{extra_s:12.0f} s{most:12}"
            )
        order = sorted(policies, key=lambda policy: statistics.fmean(one.mean_s for one in courses[policy]))
        print(f"{name:19}order, fastest first: {', '.join(order)}")
    print(f"ratio: mean job time of {policies[0]} over that of the policy; node-seconds: beyond the first {CORE} nodes")
