"""Probing jobs and masters in the simulator."""

import dataclasses
import math

import numpy as np
import pytest

from boathouse_policies import fspy
from boathouse_policies.fspy.prediction import Counter, Features, Predictor, TotalTimes, scaled
from boathouse_sim import probing
from boathouse_sim.simulation import Instant
from tests.builders import simulations

SPLIT = 64 << 20


def job_features(maps: int = 4, reduces: int = 2, scale: float = 1.0) -> Features:
    amounts = np.array([maps * SPLIT, maps * 3.0, maps * 1e6, maps * 1e4, 4.0, 1e6, 1e4]) * scale
    amounts[0] = maps * SPLIT
    return Features(maps, reduces, *amounts)


def probe_of(features: Features, *, start_s: float = 0.0, times: TotalTimes | None = None):
    return probing.probe(
        features,
        times or TotalTimes(map_s=40.0, reduce_s=20.0),
        container=simulations.phase(seconds=start_s, mb=2000),
        split_bytes=SPLIT,
        rng=np.random.default_rng(1),
    )


def probed_job(name: str = "0", *, program: str = "", at_s: float = 0.0, maps: int = 4, seconds: float = 10):
    phases = (
        dataclasses.replace(simulations.phase(maps, seconds, 1000), input_bytes=SPLIT),
        simulations.phase(2, seconds, 1000, kind="reduce"),
    )
    spec = simulations.job(name, *phases, at_s=at_s)
    return dataclasses.replace(spec, program=program, stated=False, probe=probe_of(job_features(maps)))


def trained_predictor() -> Predictor:
    predictor, random = Predictor(fspy.Config()), np.random.default_rng(3)
    for _ in range(40):
        maps = int(random.integers(1, 30))
        job = job_features(maps, scale=float(random.uniform(0.5, 2.0)))
        predictor.learn(job, TotalTimes(map_s=10.0 * maps, reduce_s=20.0))
    return predictor


def simulate_probing(workload, predictor: Predictor):
    """What a simulation measured, and when each job had a size."""
    profile = fspy.build()
    profile.order.load({"predictor": predictor.dump()})
    sized_at_s: dict[str, float] = {}

    def watch(world):
        for job in profile.order.worlds.jobs.values():
            if job.size < math.inf:
                sized_at_s.setdefault(job.id, world.clock.now_s)

    return simulations.run(Instant(workload, profile), watch).finished(), sized_at_s


def test_a_probe_reads_one_split_of_many_and_takes_its_part_of_the_time():
    job = probe_of(job_features(maps=10, reduces=2), start_s=3.0, times=TotalTimes(map_s=100.0, reduce_s=50.0))
    counters = dict(job.counters)
    assert counters[Counter.SAMPLED_FRACTION] == pytest.approx(0.1, rel=1e-3)
    assert job.duration_ms == pytest.approx(3000 + 15_000, rel=1e-3)
    assert scaled(counters, maps=10, reduces=2).map_output_bytes == pytest.approx(1e7)


def test_only_a_policy_that_predicts_gets_probing_jobs():
    workload = simulations.workload(probed_job(), nodes=2)
    assert [simulations.results(workload, name).probes for name in ("fair", "srjf", "fspy")] == [0, 0, 1]


def test_stated_run_times_need_no_probe():
    stated = dataclasses.replace(probed_job(), stated=True)
    assert simulations.results(simulations.workload(stated), "fspy").probes == 0


def test_a_probe_counts_as_neither_job_nor_task_and_its_memory_is_reported():
    found = simulations.results(simulations.workload(probed_job(), nodes=2), "fspy")
    assert (found.jobs, found.tasks) == (1, 6)
    probe_s = probe_of(job_features()).duration_ms / 1000
    assert found.probing_share == pytest.approx(2000 * probe_s / (2000 * probe_s + 6 * 10 * 1000))


def test_a_job_is_sized_when_its_probe_ends_and_runs_meanwhile():
    found, sized_at_s = simulate_probing(simulations.workload(probed_job(maps=8), nodes=2), trained_predictor())
    assert sized_at_s == {"0": probe_of(job_features(8)).duration_ms / 1000}
    assert found.job_times_s == (10.0,)


def test_what_was_probed_serves_the_next_job_of_its_program():
    programs = ("sort", "sort", "grep")
    jobs = [probed_job(str(i), program=program, at_s=100.0 * i, seconds=20) for i, program in enumerate(programs)]
    found, sized_at_s = simulate_probing(simulations.workload(*jobs, nodes=2), trained_predictor())
    assert found.probes == 2
    assert sized_at_s["1"] == 100.0


def test_a_probe_that_did_not_begin_is_removed_with_its_job():
    short = dataclasses.replace(
        probed_job(), phases=(simulations.phase(1, 5, 6000), simulations.phase(1, 5, 6000, kind="reduce"))
    )
    late = dataclasses.replace(short, submit_ms=1000, probe=dataclasses.replace(short.probe, mem_ideal_mb=8000))
    behind = simulations.job("1", simulations.phase(1, 60, 4000), at_s=0)
    world = simulations.run(Instant(simulations.workload(behind, late), fspy.build()))
    found = world.finished()
    assert (found.jobs, found.probes, world.waiting, len(world.room)) == (2, 0, 0, 0)


def test_a_master_is_placed_first_and_holds_its_room_until_the_job_ends():
    spec = simulations.job("0", simulations.phase(2, 10, 4000))
    led = dataclasses.replace(spec, master=simulations.phase(1, 3, 4000, kind="driver"))
    assert simulations.results(simulations.workload(spec, node_mb=8000), "fifo").job_times_s == (10.0,)
    found = simulations.results(simulations.workload(led, node_mb=8000), "fifo")  # beside it there is room for one task
    assert found.job_times_s == (23.0,)
    assert found.memory_utilisation == pytest.approx((2 * 10 * 4000 + 23 * 4000) / (23 * 8000))
    assert found.tasks == 2
