"""Schedulers that know all, and the bound, by hand."""

import pytest

from boathouse_lab.board import demand, knowing, search
from boathouse_lab.board.columns import Arrived
from boathouse_policies.baselines import LEAST_LOADED
from boathouse_policies.framework import Profile
from boathouse_sim.live import Live
from tests.builders import simulations

LONG = simulations.mapreduce("a", maps=4)
SHORT = simulations.mapreduce("b", map=simulations.mapper(2.0))
ONE_CORE = simulations.live_workload(LONG, SHORT, cores=1)


def times_s(profile, workload=ONE_CORE):
    return simulations.run(Live(workload, profile)).finished().job_times_s


@pytest.mark.parametrize("scheduler", knowing.SCHEDULERS)
def test_who_knows_all_lets_the_short_job_go_first(scheduler):
    assert times_s(knowing.build(scheduler, ONE_CORE, 1)) == (42.0, 2.0)


def test_remaining_work_counts_what_has_ended():
    nearly_over = simulations.mapreduce("a", maps=3)
    later = simulations.mapreduce("b", maps=2, submit_ms=15_000)
    found = simulations.live_workload(nearly_over, later, cores=1)
    assert times_s(knowing.build("srpt", found, 1), found) == (30.0, 35.0)


def test_the_bound_is_no_higher_than_what_the_best_takes():
    best_s = sum(times_s(knowing.build("srpt", ONE_CORE, 1))) / 2
    assert 0 < knowing.least_mean_s(ONE_CORE) <= best_s


def test_a_pool_runs_one_job_after_the_other_in_the_order():
    demands = demand.of(ONE_CORE)
    starts = search.LAUNCH_S
    assert search.mean_s(demands, ONE_CORE.cluster, ["b", "a"]) == pytest.approx(
        ((2 + starts) + (2 + starts + 4 * (10 + starts))) / 2
    )
    assert search.best(demands, ONE_CORE.cluster, 1, steps=5) == ["b", "a"]


def test_kube_schedulers_order_is_that_in_which_pods_were_created():
    first = simulations.mapreduce("a", maps=2, reduces=1, slow_start=1.0)
    second = simulations.mapreduce("b", maps=2, submit_ms=1000)
    order = Arrived()
    profile = Profile(name="kube-scheduler", order=order, score=LEAST_LOADED, hooks=(order,))
    found = simulations.live_workload(first, second, cores=1)
    # The first job's reducer is created at 20 s, after the second job's maps.
    assert times_s(profile, found)[1] == pytest.approx(39.0)
