"""Models from two runs of a reducer: the paper's frameworks."""

import numpy as np
import pytest

from boathouse_lab.reproduce.yarn_me import fitted
from boathouse_policies.yarn_me import penalty

MB = 1_000_000


def recorded_run(memory_mb, seconds, input_mb, **fields):
    return fitted.Run(memory_bytes=memory_mb * MB, duration_s=seconds, input_bytes=input_mb * MB, **fields)


@pytest.mark.parametrize("profiled_at", [0.1, 0.35, 0.52, 0.9])
def test_two_runs_tell_the_run_time_with_any_other_memory(profiled_at):
    shuffled = 2000 * MB * penalty.BUFFER_SHARE
    truth = penalty.Reducer(ideal_s=100.0, input_bytes=shuffled, disk_bytes_per_s=shuffled / (100.0 * 1.3))
    memory = round(2000 * profiled_at)
    undersized = recorded_run(memory, float(truth.run_time_s(np.array(float(memory * MB)))), 1400)
    model = fitted.fit_reducer(recorded_run(2000, 100.0, 1400), undersized)
    others = np.linspace(200, 2000, 50) * MB
    assert model.run_time_s(others) == pytest.approx(truth.run_time_s(others))


def test_reported_spills_are_taken_before_those_worked_out():
    undersized = recorded_run(1000, 150.0, 1400, spilled_bytes=350 * MB)
    assert fitted.fit_reducer(recorded_run(2000, 100.0, 1400), undersized).disk_bytes_per_s == pytest.approx(7 * MB)


def test_spark_fills_its_buffer_faster_by_what_its_report_shows():
    undersized = recorded_run(1000, 150.0, 700, spilled_bytes=350 * MB, spilled_memory_bytes=700 * MB)
    model = fitted.fit_reducer(recorded_run(2000, 100.0, 700), undersized)
    assert (model.expansion, model.ideal_bytes) == (2.0, pytest.approx(2000 * MB))
    assert float(model.spilled_bytes(np.array(1000.0 * MB))) == pytest.approx(350 * MB)


def test_tez_leaves_local_output_out_of_the_buffer():
    model = fitted.fit_reducer(recorded_run(2000, 100.0, 2000), recorded_run(1000, 150.0, 2000, local_bytes=600 * MB))
    assert model.ideal_bytes == pytest.approx(2000 * MB)


def test_spills_that_cost_nothing_make_elasticity_free():
    model = fitted.fit_reducer(recorded_run(2000, 100.0, 1400), recorded_run(1000, 99.0, 1400))
    assert float(model.run_time_s(np.array(500.0 * MB))) == 100.0


def test_a_run_that_spilled_nothing_teaches_no_rate():
    with pytest.raises(ValueError, match="spilled nothing: profile one with less memory"):
        fitted.fit_reducer(recorded_run(2000, 100.0, 1400), recorded_run(2000, 120.0, 1400))
