"""The evaluation of the fuzzy model on reducers that it has not learnt from."""

import dataclasses
import math

import numpy as np
import pytest

from boathouse_lab.reproduce.ikayak import predicting
from boathouse_lab.reproduce.ikayak.predicting import Recorded, Trial


def test_the_error_is_relative_to_the_mean():
    assert predicting.nrmse(np.array([12.0, 8.0]), np.array([10.0, 10.0])) == pytest.approx(0.2)
    assert math.isnan(predicting.nrmse(np.array([]), np.array([])))


def recorded_reducer(number, seconds=100.0, program="sort"):
    """A reducer with a short first third and a long last one."""
    times = np.arange(5.0, seconds, 5.0)
    reports = [(float(t), float(np.sqrt(t / seconds)), 1.0, 1e9) for t in times]
    return Recorded(program=program, number=number, started_s=0.0, ended_s=seconds, reports=reports)


def test_what_never_varies_is_predicted_by_the_mean_and_the_model_but_not_by_linear_progress(monkeypatch):
    monkeypatch.setattr(predicting, "simulate", lambda _: [recorded_reducer(i) for i in range(10)])
    found = predicting.predict(Trial(jobs=10))
    assert found.mean == 0.0
    assert found.fuzzy < 0.2
    assert found.linear > 0.5


def test_nothing_is_learnt_from_what_is_held_out(monkeypatch):
    jobs = [recorded_reducer(i) for i in range(6)] + [recorded_reducer(i, 300.0) for i in range(6, 10)]
    monkeypatch.setattr(predicting, "simulate", lambda _: jobs)
    found = predicting.predict(Trial(jobs=10))
    assert found.reducers == 4
    assert found.mean > 0.5
    assert len(found.points) == 4


def test_the_sweep_has_the_middle_once():
    found = predicting.trials(2)
    assert len(set(found)) == len(found) == 2 * (len(predicting.NOISES) + len(predicting.SKEWS) - 1)


def test_a_small_trial_by_the_simulator_is_the_same_twice():
    trial = Trial(jobs=2, learnt=0.5)
    found = predicting.predict(trial)
    assert found == predicting.predict(trial)
    assert found.reducers == 18
    assert 0 < found.fuzzy < found.linear


def test_luck_and_size_vary_what_is_to_be_predicted():
    calm, noisy = (predicting.simulate(Trial(jobs=2, noise=noise, skew=0.0)) for noise in (0.0, 0.4))
    spread = [
        np.std([reducer.ended_s - reducer.started_s for reducer in some if reducer.program == "grep"])
        for some in (calm, noisy)
    ]
    assert spread[0] < spread[1]
    sizes = {job.reports[0][3] for job in predicting.simulate(dataclasses.replace(Trial(jobs=2), skew=0.5))}
    assert len(sizes) == 6
