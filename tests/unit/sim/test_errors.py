"""Mis-estimation: how the truth strays from what policies are told."""

import numpy as np
import pytest

from boathouse_sim.workload import Errors, Truth
from tests.builders import simulations

NODE_MB = 10_000


def truth(**errors):
    return Truth(Errors(**errors), np.random.default_rng(7))


def really(phase, **errors):
    (found,) = truth(**errors).of_job((phase,), NODE_MB)
    return found


def test_without_errors_the_truth_is_the_estimate():
    phase = simulations.phase(1, 100, 4000, factor=1.5)
    assert really(phase) == phase
    assert truth().run_time_ms(phase, 4000) == 100_000


@pytest.mark.parametrize(("error", "runs_ms"), [(0.5, 150_000), (-0.5, 50_000)])
def test_a_task_runs_longer_or_shorter_by_the_error(error, runs_ms):
    assert truth(duration=(error, error)).run_time_ms(simulations.phase(1, 100, 4000), 4000) == runs_ms


def test_each_task_errs_by_itself_within_the_span():
    errors = truth(duration=(-0.5, 0.5))
    runs_s = {errors.run_time_ms(simulations.phase(1, 100, 4000), 4000) / 1000 for _ in range(50)}
    assert len(runs_s) > 40
    assert (min(runs_s), max(runs_s)) == pytest.approx((50, 150), abs=10)


@pytest.mark.parametrize(("error", "ideal_mb"), [(0.5, 6000), (-0.5, 2000), (3.0, NODE_MB), (-1.0, 1)])
def test_the_true_ideal_memory_is_off_by_the_error_and_fits_a_node(error, ideal_mb):
    assert really(simulations.phase(1, 100, 4000), memory=(error, error)).mem_ideal_mb == ideal_mb


def test_a_regular_task_of_which_too_little_was_asked_spills():
    phase = really(simulations.phase(1, 100, 4000, factor=1.5), memory=(0.5, 0.5))
    assert truth().run_time_ms(phase, 4000) == 150_000


@pytest.mark.parametrize(("error", "factor"), [(0.5, 3.0), (-0.25, 1.5), (-0.9, 1.0)])
def test_the_true_penalty_is_off_by_the_error_and_never_a_gain(error, factor):
    assert really(simulations.phase(1, 100, 4000, factor=2.0), penalty=(error, error)).penalty.factor == factor


def test_memory_and_penalty_err_apart():
    phase = really(simulations.phase(1, 100, 4000, factor=2.0), memory=(-0.5, 0.5), penalty=(-0.5, 0.5))
    assert phase.mem_ideal_mb / 4000 != pytest.approx(phase.penalty.factor / 2.0, rel=0.01)
