"""The tables of models, in small."""

import numpy as np
import pytest

from boathouse_lab.models import recorded, remaining, run_times, sizes, slowdowns
from boathouse_lab.models.comparison import Comparison, Origin, nrmse, r2, relative_error
from boathouse_lab.models.run_times import Run
from boathouse_lab.reproduce.ikayak.predicting import Recorded, Trial
from tests.builders import core_ila


def test_a_table_has_a_row_for_each_predictor_with_the_interval_of_its_runs():
    rows = {("last value", Origin.TRIVIAL): [(0.1,), (0.3,)], ("line", Origin.BEST): [(0.2,), (0.2,)]}
    table = Comparison(title="Run times", about="Of maps.", columns=("error",), rows=rows).table()
    assert "## Run times" in table
    assert "| last value | trivial | 0.20 (-1.07 to 1.47) |" in table
    assert "| line | profile `boathouse` | 0.20 (0.20 to 0.20) |" in table


def test_errors_are_relative():
    predicted, actual = np.array([12.0, 8.0]), np.array([10.0, 8.0])
    assert relative_error(predicted, actual) == pytest.approx(0.1)
    assert nrmse(predicted, actual) == pytest.approx(2**0.5 / 9)
    assert r2(actual, actual) == 1.0


def test_all_models_of_slowdowns_are_fitted_and_judged():
    def drawn(seed):
        return core_ila.samples(core_ila.linear(1.0, c_a=3.0), count=200, seed=seed)

    train, held_out = drawn(1), drawn(2)
    found = slowdowns.predictions(train, held_out)
    errors = {name: relative_error(predicted, held_out.slowdown) for (name, _), predicted in found.items()}
    assert errors["nobody is slowed down"] > 0.3
    assert max(errors["linear"], errors["quadratic"]) < 0.01
    assert errors["additive, with coefficients above 0"] < errors["nobody is slowed down"]


def reducer(number, seconds):
    """A reducer whose first third waits for maps, and whose others take a fixed time."""
    ends = np.array([0.0, seconds, seconds + 20.0, seconds + 70.0])
    times = np.arange(5.0, ends[-1], 5.0)
    reports = [(float(t), float(np.interp(t, ends, [0, 1 / 3, 2 / 3, 1])), 1.0, 1e9) for t in times]
    return Recorded(program="sort", number=number, started_s=0.0, ended_s=float(ends[-1]), reports=reports)


def test_reducers_are_predicted_by_the_phases_of_the_earlier_ones(monkeypatch):
    reducers = [reducer(number, 20.0 + 40.0 * (number % 3)) for number in range(10)]
    monkeypatch.setattr(remaining.predicting, "simulate", lambda _: reducers)
    rows = remaining.compare([Trial(jobs=10)]).rows
    errors = {key: runs[0][0] for key, runs in rows.items()}
    assert errors[remaining.PHASES] < errors[remaining.MEAN]
    assert errors[remaining.PHASES] < errors[remaining.LINEAR]
    assert errors[remaining.BEST] == errors[remaining.PHASES]


def test_a_run_time_is_predicted_before_it_is_learned_from():
    runs = [Run("a", 1e6 * size, 3.0 + size) for size in (100, 200, 50, 150)]
    predict = {name: fit for (name, _), fit in run_times.PREDICTORS.items()}
    predicted, actual = run_times.prequential(runs, predict["last value"])
    assert (predicted.tolist(), actual.tolist()) == ([103.0, 203.0, 53.0], [203.0, 53.0, 153.0])


def test_a_start_that_costs_as_much_for_little_input_is_what_the_line_knows():
    runs = [Run("a", 1e6 * size, 30.0 + size / 10) for size in (100, 200, 50, 150, 1, 300, 2)]
    errors = {
        name: relative_error(*run_times.prequential(runs, fit)) for (name, _), fit in run_times.PREDICTORS.items()
    }
    lines = {name: error for name, error in errors.items() if "line" in name}
    others = {name: error for name, error in errors.items() if name not in (*lines, "kernel regression of logarithms")}
    assert max(lines.values()) < min(others.values())


def test_sizes_are_compared_on_jobs_that_were_not_learned_from():
    found = sizes.compare(1, jobs=120).rows
    assert {origin for _, origin in found} == {Origin.TRIVIAL, Origin.PAPER, Origin.MODERN, Origin.BEST}
    assert (
        found["mean of all jobs", Origin.TRIVIAL][0][0]
        > found["two linear models of the probe's features", Origin.PAPER][0][0]
    )


def recorded_task(program="sort", *, seconds, is_alone=False, others_cpus=0.0, started_s=0.0):
    return recorded.RecordedTask(
        program=program, is_alone=is_alone, started_s=started_s, seconds=seconds, input_bytes=4 << 20, cpu_s=2.0,
        spilled_bytes=0.0, others_cpus=others_cpus, others_read_bytes_per_s=0.0, others_written_bytes_per_s=20e6,
    )  # fmt: skip


def test_a_recorded_map_is_slowed_down_beside_the_median_of_those_that_ran_alone():
    alone = [recorded_task(seconds=seconds, is_alone=True) for seconds in (1.0, 2.0, 9.0)]
    beside = recorded_task(seconds=5.0, others_cpus=1.0)
    found = recorded.samples((*alone, beside, recorded_task("cat", seconds=1.0)))
    assert found.slowdown.tolist() == [2.5]
    assert found.rows[:, 0].tolist() == pytest.approx([0, 0.5, 0, 0, 0, 0, 0.1, 0.1, 1.0, 0, 0])


def test_recorded_maps_are_read_as_they_were_written_in_the_order_of_their_ends(tmp_path):
    late, early = recorded_task(seconds=5.0), recorded_task(seconds=1.0, is_alone=True, started_s=1.0)
    recorded.write([late, early], tmp_path / "tasks.csv")
    assert recorded.tasks(tmp_path / "tasks.csv") == (early, late)


def test_all_predictors_are_judged_by_recorded_maps():
    rows = [recorded_task(seconds=seconds, started_s=seconds) for seconds in (1.0, 2.0, 2.0, 3.0)]
    table = run_times.compare_recorded([Run(row.program, row.input_bytes, row.seconds) for row in rows]).table()
    assert "| last value | trivial | 0.28 " in table
    assert len(table.splitlines()) == 6 + len(run_times.PREDICTORS)


def test_each_part_of_a_recording_is_held_out_once():
    found = slowdowns.compare_recorded(core_ila.samples(core_ila.linear(1.0, c_a=3.0), count=300, seed=1))
    errors = found.rows["linear", Origin.PAPER]
    assert len(errors) == 3
    assert max(error for error, _ in errors) < 0.01
