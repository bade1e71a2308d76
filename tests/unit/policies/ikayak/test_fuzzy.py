"""The fuzzy model: rules that fire, least squares that learns, a state that survives."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies.ikayak import Config, predictors
from boathouse_policies.ikayak.predictors import RULES, WIDTH, Fuzzy


def sample_of(left=1.0, before=1.0, done=0.5, size=1.0):
    return np.array([left, before, 1.0, 1.0, size, 1.0, 1 - done, 1 - done])


def reducer_samples(random, count):
    """A reducer whose remaining time is not what its pace says."""
    done = np.sort(random.uniform(0.01, 0.99, count))
    left = 10.0 * (1 - done) ** 2 + random.normal(0, 0.1, count)
    lags = 7.0 * (1 - done) + random.normal(0, 0.5, count)
    return [sample_of(y, y + 0.1, d, random.uniform(0.5, 2)) for y, d in zip(lags, done, strict=True)], left


def batch(model: Fuzzy, samples, labels, keep, discount, trust):
    """Weighted least squares of all extended rows at once, the prior as the first observation."""
    rows = model.rows(samples)
    normal, right = np.eye(rows.shape[1]) / trust, predictors.prior() / trust
    for t in range(len(rows)):
        normal, right = normal * keep, right * keep
        for back, weight in ((0, 1.0), (1, discount)):
            if t >= back:
                row = rows[t - back]
                normal, right = normal + weight * np.outer(row, row), right + weight * row * labels[t - back]
    return np.linalg.solve(normal, right)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
@pytest.mark.parametrize(("keep", "discount"), [(0.98, 0.5), (1.0, 0.0), (0.9, 1.0)])
def test_recursive_least_squares_equals_batch_weighted_least_squares(count, keep, discount):
    samples, labels = reducer_samples(np.random.default_rng(count), count)
    model = Fuzzy(Config(forgetting=keep, discount=discount, trust=10.0))
    weighed = model.rows(samples), labels
    for t in range(count):
        last = slice(max(0, t - 1), t + 1)
        weights = np.sqrt([discount, 1.0])[-1 - min(t, 1) :]
        model.learn(weighed[0][last] * weights[:, None], weighed[1][last] * weights, keep)
    expected = batch(model, samples, labels, keep, discount, 10.0)
    rows = model.rows(samples)
    assert np.abs(rows @ model.parameters - rows @ expected).max() < 1e-9
    assert np.abs(model.parameters - expected).max() < 1e-9 * max(1.0, np.abs(expected).max())


def test_a_history_is_forgotten_as_a_whole():
    samples, labels = reducer_samples(np.random.default_rng(3), 10)
    model = Fuzzy(Config(forgetting=0.5, discount=0.5))
    model.fit(samples, labels)
    expected = batch(model, samples, labels, 0.5 ** (1 / 10), 0.5, 1.0 / 10)  # ten samples count as one observation
    assert np.abs(model.parameters - expected).max() < 1e-9


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=2, max_size=2))
def test_firing_strengths_are_shares(premise):
    firing = predictors.firing(np.array(premise))
    assert firing.shape == (RULES,)
    assert firing.min() >= 0
    assert firing.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("done", "rule"), [(0.05, 0), (0.3, 0), (0.4, 1), (0.6, 1), (0.7, 2), (0.99, 2)])
def test_the_rule_of_the_phase_fires_most(done, rule):
    assert predictors.firing(sample_of(done=done)[WIDTH:]).argmax() == rule


def test_between_two_phases_their_rules_fire_alike():
    firing = predictors.firing(sample_of(done=1 / 3)[WIDTH:])
    assert firing[0] == pytest.approx(firing[1])
    assert firing[0] > 0.49


def test_the_second_lag_is_an_antecedent_too():
    premise = sample_of(done=0.5)[WIDTH:].copy()
    premise[1] = 1 - 0.3
    assert predictors.firing(premise)[0] > predictors.firing(sample_of(done=0.5)[WIDTH:])[0]


def test_the_rows_are_the_regressor_weighed_by_the_rules():
    model, sample = Fuzzy(Config()), sample_of(left=3.0, done=0.5)
    rows = model.rows([sample]).reshape(RULES, WIDTH)
    assert np.allclose(rows.sum(axis=0), sample[:WIDTH])
    assert np.allclose(rows[1], predictors.firing(sample[WIDTH:])[1] * sample[:WIDTH])


def test_nothing_learned_means_the_pace_of_the_last_sample():
    assert Fuzzy(Config()).predict([sample_of(left=2.5)]) == pytest.approx(2.5)


def test_a_remaining_time_is_never_negative():
    assert Fuzzy(Config()).predict([sample_of(left=-2.5)]) == 0.0


def test_many_are_predicted_as_one_by_one():
    samples, labels = reducer_samples(np.random.default_rng(1), 20)
    model = Fuzzy(Config())
    model.fit(samples, labels)
    together = model.predict(samples)
    assert together == pytest.approx([float(model.predict([sample])[0]) for sample in samples])


def error(model, samples, labels):
    found = model.predict(samples)
    return np.sqrt(np.mean((found - labels) ** 2))


def test_it_learns_what_the_pace_does_not_say():
    random, model = np.random.default_rng(2), Fuzzy(Config())
    for _ in range(10):
        model.fit(*reducer_samples(random, 30))
    held_out = reducer_samples(random, 300)
    assert error(model, *held_out) < 0.6 * error(Fuzzy(Config()), *held_out)


def test_what_is_learned_later_counts_more():
    model, sample = Fuzzy(Config(forgetting=0.5)), sample_of()
    for label in [1.0] * 20 + [5.0] * 5:
        model.fit([sample], np.array([label]))
    assert model.predict([sample]) > 4.5


def test_inputs_that_never_vary_do_no_harm():
    model, sample = Fuzzy(Config(forgetting=0.5)), sample_of()
    for _ in range(600):
        model.fit([sample, sample], np.array([1.0, 1.0]))
    other = sample_of(left=1.1, before=1.1, done=0.5)
    assert model.predict([sample]) == pytest.approx(1.0, abs=1e-6)
    assert np.isfinite(model.predict([other]))


def test_a_dump_gives_equal_predictions_and_learns_on_as_before():
    random, model = np.random.default_rng(4), Fuzzy(Config())
    model.fit(*reducer_samples(random, 30))
    after = Fuzzy(Config())
    after.load(json.loads(json.dumps(model.dump())))
    more = reducer_samples(random, 10)
    model.fit(*more)
    after.fit(*more)
    assert (after.parameters == model.parameters).all()
    assert len(json.dumps(model.dump())) < 2200


@pytest.mark.parametrize("state", [{}, {"parameters": "x", "p": 1}, {"parameters": "AAAA", "p": ""}])
def test_a_dump_that_is_not_understood_leaves_the_prior_rules(state):
    model = Fuzzy(Config())
    model.load(state)
    assert (model.parameters == predictors.prior()).all()


def test_a_dump_of_another_shape_or_without_numbers_is_ignored():
    model, dump = Fuzzy(Config()), dict(Fuzzy(Config()).dump())
    model.load(dump | {"p": dump["parameters"]})
    model.load(dump | {"parameters": predictors._packed(np.full(RULES * WIDTH, np.nan))})
    assert (model.parameters == predictors.prior()).all()
