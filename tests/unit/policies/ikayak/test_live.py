"""The profile in the simulator: Spark beside MapReduce, each mechanism alone, and a restart."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_lab import invariants
from boathouse_policies import ikayak, model, profiles
from boathouse_policies.ikayak import predictors
from boathouse_sim import topology, work
from boathouse_sim.conditions import Conditions, Saturation
from boathouse_sim.live import MapReduce, Spark, SparkStage
from boathouse_sim.workload import Cluster, Workload
from tests.builders import simulations

MAP = work.Container(mem_mb=1000, segments=(work.segment("map", cpu_s=10, read_mb=64, write_mb=20),))
REDUCE = work.Container(
    mem_mb=1000,
    segments=(
        work.segment("shuffle", copy_mb=200),
        work.segment("sort", read_mb=100, write_mb=100),
        work.segment("reduce", cpu_s=15),
    ),
)


def mixed(jobs=2, min_executors=0) -> Workload:
    apps = []
    for i in range(jobs):
        apps.append(
            MapReduce(id=f"m{i}", maps=20, map=MAP, reduces=6, reduce=REDUCE, submit_ms=i * 10_000, program="sort")
        )
        apps.append(
            Spark(
                id=f"s{i}",
                executors=3,
                min_executors=min_executors,
                executor=work.Container(mem_mb=3000, cores=3),
                driver=work.Container(mem_mb=500),
                stages=(SparkStage(tasks=24, work=work.segment("task", cpu_s=6, read_mb=32), replicas=2),),
                submit_ms=i * 10_000 + 3000,
            )
        )
    conditions = Conditions(contention=Saturation(), records=True)
    machines = topology.machines(4, cores=4, mem_mb=8000)
    return Workload(name="mixed", cluster=Cluster.of(machines), apps=tuple(apps), conditions=conditions)


def simulate_ikayak(workload, profile="ikayak", seed=1):
    """The world after a simulation."""
    return simulations.live_world(workload, profile, seed, watch=invariants.Invariants())


ALONE = {"placement": False, "suspension": False, "shrink": ikayak.Shrink.OFF, "local_first": False}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, id="all"),
        pytest.param(ALONE, id="none"),
        pytest.param(ALONE | {"placement": True}, id="placement"),
        pytest.param(ALONE | {"suspension": True}, id="suspension"),
        pytest.param(ALONE | {"shrink": ikayak.Shrink.CPU, "local_first": True}, id="shrinking"),
    ],
)
def test_all_jobs_end_with_each_mechanism(config):
    world = simulate_ikayak(mixed(), ikayak.build(config=ikayak.Config(**config)))
    assert len(world.finished().job_times_s) == 4


def test_applications_with_a_minimum_end_too():
    assert len(simulate_ikayak(mixed(min_executors=3)).finished().job_times_s) == 4


def test_the_same_run_twice_decides_the_same():
    times = [simulate_ikayak(mixed()).finished().job_times_s for _ in range(2)]
    assert times[0] == times[1]


def test_what_was_learned_survives_a_restart_through_json():
    first, second = ikayak.build(), ikayak.build()
    simulate_ikayak(mixed(), first)
    for observer, other in zip(first.observers, second.observers, strict=True):
        other.load(json.loads(json.dumps(observer.dump())))
    keys = [observer.dump() for observer in first.observers], [observer.dump() for observer in second.observers]
    assert keys[0] == keys[1]
    assert (first.observers[1].bank.model("sort").parameters != predictors.prior()).any()


def test_nothing_is_kept_of_jobs_that_are_over():
    profile = ikayak.build()
    simulate_ikayak(mixed(), profile)
    running, book = profile.observers
    assert (book.jobs, book.reducers, running.suspended, running.tasks) == ({}, {}, {}, {})


def test_the_names_of_the_profile():
    profile = profiles.build("ikayak")
    assert profile.name == "ikayak"
    assert profile.score_of(model.Stage.EXECUTOR) is profile.score_of(model.Stage.DRIVER)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    st.integers(1, 3),
    st.integers(0, 3),
    st.sampled_from([0.25, 0.5, 1.0]),
    st.sampled_from(list(ikayak.Shrink)),
    st.integers(0, 99),
)
def test_every_job_ends_whatever_is_kept_lent_and_shrunk(jobs, min_executors, kept_share, shrink, seed):
    config = ikayak.Config(kept_share=kept_share, shrink=shrink, interval_s=60.0, overhead=0.0)
    world = simulate_ikayak(mixed(jobs, min_executors), ikayak.build(config=config), seed)
    assert len(world.finished().job_times_s) == 2 * jobs
