"""What predicts the remaining time of a class' reducers, and who has predicted it best so far."""

import json

import numpy as np
import pytest

from boathouse_policies import model
from boathouse_policies.ikayak import Config
from boathouse_policies.ikayak.predictors import UNKNOWN, Phases
from boathouse_policies.ikayak.remaining import UNIT_BYTES, UNIT_S, Bank, History, Predictor

KEY = "ns/sort"


def reducer(lengths_s, size=1.0, until=None) -> History:
    """A reducer whose three phases take so long; it reports every 5 s until a part of its work is done."""
    ends = np.cumsum(lengths_s)
    found = History(0.0)
    for now_s in np.arange(5.0, ends[-1], 5.0):
        fraction = float(np.interp(now_s, [0.0, *ends], [0.0, 1 / 3, 2 / 3, 1.0]))
        if until is not None and fraction > until:
            break
        found.report(float(now_s), fraction, 1.0, size * UNIT_BYTES)
    return found


def learn(bank, *all_lengths_s, size=1.0):
    for lengths_s in all_lengths_s:
        bank.learn(KEY, reducer(lengths_s, size), sum(lengths_s))
        bank.ended(KEY, model.Stage.REDUCE, sum(lengths_s))


def left_s(bank, by, history):
    return float(bank.predicted(KEY, by, [history.now])[0]) * UNIT_S


def test_the_phases_of_a_reducer_that_ended_are_as_long_as_they_were():
    assert reducer([60, 20, 100]).all_lengths_s(180.0) == pytest.approx([60, 20, 100], abs=3)


def test_a_reducer_that_ended_before_its_next_report_shares_the_rest_among_its_phases():
    assert reducer([60, 1, 1]).all_lengths_s(62.0) == pytest.approx([60, 1, 1], abs=1.1)


def test_the_phases_ahead_take_what_they_took_before():
    bank = Bank(Config())
    learn(bank, [30, 20, 100])
    early = reducer([30, 20, 100], until=0.2)
    assert left_s(bank, Predictor.PHASES, early) == pytest.approx(150 - early.at_s, rel=0.1)
    assert float(early.now[0]) * UNIT_S < 100  # by the pace of the shuffle


def test_a_slow_sort_foretells_a_slow_reduce_but_a_slow_shuffle_nothing():
    bank = Bank(Config())
    learn(bank, [30, 20, 100])
    waiting, slow = reducer([300, 20, 100], until=0.3), reducer([30, 80, 100], until=0.6)
    assert left_s(bank, Predictor.PHASES, waiting) < 120 + 300 * 0.2
    assert left_s(bank, Predictor.PHASES, slow) > 140


def test_more_input_takes_longer_but_not_in_proportion():
    bank = Bank(Config())
    learn(bank, [30, 20, 100])
    usual, large = (left_s(bank, Predictor.PHASES, reducer([30, 20, 100], size, until=0.2)) for size in (1.0, 4.0))
    assert 1.3 * usual < large < 3 * usual


def test_the_paper_s_model_predicts_unless_the_best_is_asked_for():
    bank = Bank(Config())
    learn(bank, *[[30, 20, 100]] * 6)
    assert bank.predictor(KEY) is Predictor.FUZZY
    assert bank.standing(KEY) == ()


def test_whoever_predicted_best_so_far_predicts():
    bank = Bank(Config(best_predictor=True))
    assert bank.predictor(KEY) is Predictor.FUZZY
    learn(bank, *[[30, 20, 100]] * 8)
    assert bank.predictor(KEY) is Predictor.MEAN
    (_, predictor), (_, error) = bank.standing(KEY)
    assert (predictor, error) == (Predictor.MEAN, pytest.approx(0.0, abs=0.01))
    learn(bank, *([length, 20, 100] for length in (30, 200, 60, 300, 90, 250, 40, 400)))
    assert bank.predictor(KEY) is Predictor.PHASES


def test_what_was_learned_of_phases_survives_a_restart():
    bank, after = Bank(Config(best_predictor=True)), Bank(Config(best_predictor=True))
    learn(bank, *[[30, 20, 100]] * 8)
    after.load(json.loads(json.dumps(bank.dump())))
    now = reducer([30, 20, 100], until=0.5)
    assert after.predictor(KEY) is bank.predictor(KEY) is Predictor.MEAN
    assert left_s(after, Predictor.PHASES, now) == left_s(bank, Predictor.PHASES, now)


def test_a_class_that_is_forgotten_leaves_nothing():
    bank = Bank(Config(best_predictor=True))
    learn(bank, *[[30, 20, 100]] * 8)
    bank.forget(KEY)
    assert not any(KEY in json.dumps(kept) for kept in bank.dump().values())


@pytest.mark.parametrize("numbers", [None, [1, 2], [1, 2, 3, 4, "x"], [1, -2, 3, 4, 5], [float("nan")] * 5])
def test_what_is_no_dump_of_phases_is_none(numbers):
    assert Phases.restored(numbers) is None


def test_means_follow_what_is_new():
    usual = UNKNOWN
    for length_s in [10.0] * 100 + [20.0] * 200:
        usual = usual.after([length_s] * 3, 1.0)
    assert usual.lengths_s[0] == pytest.approx(20.0, abs=1.0)
