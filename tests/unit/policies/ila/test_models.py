"""Interference models of ILA: what they predict, and that fits find what made the samples."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from boathouse_lab.reproduce.ila import polynomials
from boathouse_policies.ila import exponential, fitting, learning, profiling
from tests.builders.core_ila import (
    exponential_model,
    exponential_term,
    linear,
    mean_error,
    metric_rows,
    quadratic,
    samples,
)

FITS = {"exponential": fitting.fit, "linear": polynomials.linear, "quadratic": polynomials.quadratic}


TRUTHS = {
    "exponential": exponential_model(),
    "linear": linear(1.0, c_a=1.0, w_a=2.0, t_c=0.5),
    "quadratic": quadratic(),
}
"""Models of each form, to make samples by."""


@pytest.mark.parametrize("family", list(FITS))
def test_each_form_finds_what_made_the_samples(family):
    fitted = FITS[family](samples(TRUTHS[family]))
    assert mean_error(fitted, samples(TRUTHS[family], seed=1)) < 0.01


@pytest.mark.parametrize("family", ["linear", "quadratic"])
def test_the_plain_forms_miss_what_rises_exponentially_by_more(family):
    some, others = samples(), samples(seed=1)
    fitted, plain = fitting.fit(some), FITS[family](some)
    assert mean_error(fitted, others) < mean_error(plain, others) / 2


def test_the_coefficients_of_the_exponential_model_are_found():
    fitted = fitting.fit(samples())
    assert fitted.cpu.gamma[profiling.C_A] == pytest.approx(3.0, rel=0.1)
    assert fitted.io.gamma[profiling.W_A] == pytest.approx(1.5, rel=0.1)


def test_a_refit_keeps_the_variables_and_follows_what_changed():
    before = fitting.fit(samples())
    changed = metric_rows(seed=2)
    slower = fitting.Samples(changed, 1.5 * TRUTHS["exponential"].predict(changed))
    after = fitting.fit(slower, before=before)
    assert mean_error(after, slower) < 0.02 < mean_error(before, slower)
    assert [np.flatnonzero(term.gamma).tolist() for term in after.terms] == [
        np.flatnonzero(term.gamma).tolist() for term in before.terms
    ]


def test_too_few_samples_or_samples_that_are_all_the_same_give_no_model():
    some = samples()
    assert fitting.fit(some.of(np.arange(10))) is None
    assert fitting.fit(fitting.Samples(some.rows, np.ones(len(some)))) is None


def test_samples_that_count_for_little_move_a_fit_little():
    some, other = samples(), metric_rows(seed=3)
    wrong = fitting.Samples(other, np.full(300, 9.0), counted=np.full(300, 1e-6))
    assert mean_error(fitting.fit(some.beside(wrong)), some) < 0.01


def test_a_dump_predicts_the_same_after_a_restart():
    fitted = fitting.fit(samples())
    again = exponential.Exponential.load(json.loads(json.dumps(fitted.dump())))
    made = metric_rows(seed=4)
    assert again.predict(made) == pytest.approx(fitted.predict(made), rel=1e-3)


demands = st.builds(profiling.Demand, *[st.floats(0, 1)] * 3)


@given(st.sampled_from(list(FITS)), demands)
@settings(max_examples=40, deadline=None)
def test_parts_and_weights_predict_what_all_metrics_at_once_do(family, demand):
    model, made = TRUTHS[family], metric_rows(40)
    made[profiling.SYSTEM :] = np.array(demand)[:, None]
    weights, parts = model.weights(demand), model.parts(made[: profiling.SYSTEM])
    assert weights.predict(parts) == pytest.approx(model.predict(made))
    assert [weights.at(column) for column in parts.T.tolist()] == weights.predict(parts).tolist()


@given(demands)
@settings(max_examples=40, deadline=None)
def test_no_exponent_exceeds_its_clip(demand):
    steep = dataclasses.replace(exponential_term(1.0, c_a=50.0, t_c=50.0), most=2.0)
    clipped = exponential.Exponential(cpu=steep, io=exponential_term(0.0), constant=1.0)
    predicted = clipped.weights(demand).predict(clipped.parts(metric_rows(40)[: profiling.SYSTEM]))
    assert predicted.max() <= 1.0 + np.exp(2.0) + 1e-9


def test_nobody_is_predicted_to_be_faster_than_alone():
    assert linear(0.2).predict(metric_rows(3)).tolist() == [1.0, 1.0, 1.0]


# Gauss-Newton and the stepwise choice


@pytest.mark.parametrize("seed", range(8))
def test_no_step_of_gauss_newton_makes_it_worse(seed):
    random = np.random.default_rng(seed)
    z, y = random.normal(size=(60, 2)), random.uniform(1, 9, 60)
    curve = fitting.exponentials([z], np.ones(60))
    start = random.normal(size=4) * 2.0
    left = [fitting.solve(curve, start, y, steps=steps)[1] for steps in range(12)]
    assert left[0] == pytest.approx(float(((y - curve(start)[0]) ** 2).sum()))
    assert left == sorted(left, reverse=True)


def test_the_slopes_of_the_curve_are_its_derivatives():
    random = np.random.default_rng(6)
    curve = fitting.exponentials([random.normal(size=(9, 2)), random.normal(size=(9, 1))], random.uniform(1, 2, 9))
    at = np.array([0.7, 0.2, -0.3, 1.1, 0.4, 0.9])
    for i, slope in enumerate(curve(at)[1].T):
        step = np.eye(len(at))[i] * 1e-6
        assert slope == pytest.approx((curve(at + step)[0] - curve(at - step)[0]) / 2e-6, rel=1e-4, abs=1e-6)


def test_variables_that_do_not_pay_are_not_chosen():
    def fit(chosen):
        cost = 10.0 - 5.0 * (2 in chosen) - 3.0 * (0 in chosen) + 1.0 * len(chosen)
        return fitting.Choice(chosen, np.zeros(0), cost)

    assert sorted(fitting.choose(range(4), fit, 4).chosen) == [0, 2]


def test_a_variable_that_came_to_be_superfluous_is_removed():
    costs = {(): 9.0, (0,): 5.0, (1,): 6.0, (0, 1): 4.0, (2,): 8.0, (0, 1, 2): 2.0, (1, 2): 1.0, (0, 2): 3.5}

    def fit(chosen):
        return fitting.Choice(chosen, np.zeros(0), costs[tuple(sorted(chosen))])

    assert set(fitting.choose(range(3), fit, 3).chosen) == {1, 2}


# What stands for the offline training


def test_before_anything_was_seen_neighbours_of_the_own_kind_slow_down():
    model = learning.first_models()[0]

    def slowdown(demand, **use):
        node = np.zeros((3, 1))
        host = np.array([[use.get("cpu", 0.0)], [use.get("disk", 0.0)], [0.0]])
        return float(model.weights(demand).predict(model.parts(profiling.system(node, host, np.zeros(1))))[0])

    computes, reads = profiling.Demand(1.0, 0.0, 0.0), profiling.Demand(0.15, 0.25, 0.0)
    assert slowdown(computes, cpu=0.4) < 1.15
    assert slowdown(computes, cpu=1.0) > 1.5
    assert slowdown(reads, disk=0.2) < 1.4
    assert slowdown(reads, disk=1.5) > 2.0
    assert slowdown(computes, disk=1.0) < 1.4
