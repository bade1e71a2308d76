"""Schedulers that know all, and the bound, by hand."""

import pytest

from boathouse_lab.board import demand, knowing, search
from boathouse_lab.board.columns import Retried
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


def test_kube_scheduler_retries_the_newest_pods_first_and_those_that_were_pending_for_long_in_the_order_of_creation():
    first = simulations.mapreduce("a", maps=3)
    later = [simulations.mapreduce(name, maps=1, submit_ms=at) for name, at in (("b", 5000), ("c", 5500))]
    order = Retried()
    profile = Profile(name="kube-scheduler", order=order, score=LEAST_LOADED, hooks=(order,))
    found = simulations.live_workload(first, *later, cores=1)
    # At 10 s a core is free, and b and c have been pending for less than 10 s. At 20 s all have been for longer.
    assert times_s(profile, found) == pytest.approx([40.0, 45.0, 14.5])
