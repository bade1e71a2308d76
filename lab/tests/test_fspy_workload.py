"""The generator of job features, and how well FSPY predicts what it makes."""

import numpy as np
import pytest

from boathouse_lab.reproduce import fspy_workload as workload
from boathouse_lab.reproduce.fspy_workload import Accuracy


def generate(noise: float, seed: int = 1, count: int = 40) -> list[workload.Observed]:
    return workload.generate(count, noise, np.random.default_rng(seed))


def test_equal_seeds_make_equal_jobs():
    assert generate(0.3) == generate(0.3) != generate(0.3, seed=2)


def test_without_noise_a_job_is_its_program_and_its_input():
    for job in generate(0.0):
        exact = workload.features_of(job.program, job.probed.map_input_bytes, job.probed.reduces)
        assert job.probed.amounts() == pytest.approx(exact.amounts())
        assert (job.times.map_s, job.times.reduce_s) == pytest.approx(workload.run_times(job.program, exact))


def test_noise_blurs_times_and_features_and_keeps_their_mean():
    noise = workload.blur(0.5, np.random.default_rng(1), 200_000)
    assert (noise.mean(), noise.std()) == pytest.approx((1.0, 0.5), rel=0.02)
    job = generate(0.5)[0]
    exact = workload.features_of(job.program, job.probed.map_input_bytes, job.probed.reduces)
    assert job.probed.map_function_s != exact.map_function_s
    assert job.probed.map_input_bytes == exact.map_input_bytes
    assert job.times.map_s != workload.run_times(job.program, exact)[0]


def test_run_times_have_steps_that_no_linear_model_has():
    sort = workload.PROGRAMS[1]
    job = workload.features_of(sort, 64 * workload.BLOCK_BYTES, reduces=4)
    buffers = [workload.run_times(sort, job._replace(map_output_bytes=64 * mb * 1e6))[0] for mb in (39, 40, 41)]
    assert buffers[2] - buffers[1] > 20 * (buffers[1] - buffers[0])  # a second spill


def test_the_papers_accuracy_is_met_up_to_some_noise_and_not_at_any():
    rows = workload.sweep(range(4), (0.0, 0.1, 0.5))
    met = workload.met_up_to(rows)
    assert min(met.map_noise, met.reduce_noise, met.job_noise) >= 0.1
    assert max(met.map_noise, met.reduce_noise, met.job_noise) < 0.5
    assert rows[0].reduce_r2 < 0.999  # not of the fitted family


def test_a_value_is_met_up_to_the_first_noise_at_which_it_is_not():
    rows = [
        Accuracy(noise=noise, map_r2=r2, reduce_r2=0.95, job_r2=0.1)
        for noise, r2 in ((0.0, 1.0), (0.1, 0.95), (0.2, 0.9), (0.3, 0.99))
    ]
    assert workload.met_up_to(rows) == workload.Met(map_noise=0.1, reduce_noise=0.3, job_noise=None)


def test_r_squared_knows_perfect_mean_and_worse():
    assert workload.r_squared([1, 2, 3], [1, 2, 3]) == 1
    assert workload.r_squared([1, 2, 3], [2, 2, 2]) == 0
    assert workload.r_squared([1, 2, 3], [3, 2, 1]) == -3
    with pytest.raises(ValueError, match="two different"):
        workload.r_squared([2, 2], [1, 3])
