"""What reports of a reducer say of its pace, and what is learned once it has ended."""

import json

import numpy as np
import pytest

from boathouse_policies import model
from boathouse_policies.ikayak import Config
from boathouse_policies.ikayak.remaining import MOST_SAMPLES, UNIT_S, Bank, History
from tests.builders import core

GIB = 1 << 30


def linear_s(sample) -> float:
    """What the newest lag alone says."""
    return float(sample[0]) * UNIT_S


def history(reports) -> History:
    found = History(0.0)
    for now_s, fraction in reports:
        found.report(now_s, fraction, 1.0, GIB)
    return found


def test_a_lag_is_what_is_left_at_the_pace_of_the_phase():
    found = history([(10, 0.1)])
    assert linear_s(found.now) == pytest.approx(0.9 / 0.01)


def test_a_new_phase_has_a_pace_of_its_own():
    # The first third takes 100 s, the second 20 s: at the end of the second the pace is that of the second.
    found = history([(50, 1 / 6), (90, 0.3), (105, 1 / 3 + 1 / 12), (120, 2 / 3 - 1e-9)])
    assert linear_s(found.now) == pytest.approx(1 / 3 / (1 / 3 / 20), rel=0.01)


def test_the_phase_began_where_the_pace_before_says():
    # At 1 % of the work a second the first third ends after 33.3 s; the next report, at 40 s, is 6.7 s into the second.
    found = history([(30, 0.3), (40, 0.4)])
    assert linear_s(found.now) == pytest.approx(0.6 / ((0.4 - 1 / 3) / (40 - 100 / 3)))


def test_the_first_moments_of_a_phase_say_nothing_of_its_pace():
    found = history([(30, 0.3), (35, 0.34)])
    assert (found.at_s, linear_s(found.now)) == (30, pytest.approx(70))


def test_the_lag_before_is_remembered_with_its_cpu():
    found = History(0.0)
    found.report(10, 0.1, 1.0, GIB)
    found.report(20, 0.15, 0.5, GIB)
    left, before, cpu_before, cpu, size, constant = found.now[:6]
    assert (left * UNIT_S, before * UNIT_S) == pytest.approx((0.85 / 0.0075, 90))
    assert (cpu_before, cpu, size, constant) == (1.0, 0.5, 1.0, 1.0)
    assert found.now[6:8] == pytest.approx([0.85, 0.9])


def test_a_reducer_without_progress_has_no_pace():
    assert history([(5, 0.0), (10, 0.0)]).now is None


def test_time_away_counts_in_no_pace():
    found = history([(10, 0.1)])
    found.away_s += 100
    found.report(120, 0.2, 1.0, GIB)
    assert linear_s(found.now) == pytest.approx(0.8 / 0.01)


def test_labels_are_what_it_still_ran_without_time_away():
    found = history([(10, 0.1), (20, 0.2)])
    found.away_s += 30
    assert found.labels(90.0) * UNIT_S == pytest.approx([50, 40])


def test_a_long_reducer_keeps_few_samples_spread_over_its_life():
    found = history([(5 * i, i / 2000) for i in range(1, 1500)])
    assert MOST_SAMPLES / 2 <= len(found.samples) <= MOST_SAMPLES
    gaps = np.diff(found.times_s)
    assert gaps.min() > 25
    assert gaps.max() <= 4 * gaps.min()


# The bank


def learn_reducers(bank, key, *, seconds=100.0, number=1):
    for _ in range(number):
        found = history([(s, (s / seconds) ** 2) for s in np.arange(5.0, seconds, 5.0)])
        bank.ended(key, model.Stage.REDUCE, seconds)
        bank.learn(key, found, seconds)


def left_s(bank, key, found):
    return float(bank.left_s([key], [found.now])[0])


def map_s(bank, key, stated_s=None):
    maps = core.task_class(core.job("mr"), stage=model.Stage.MAP, estimates=model.Fixed(seconds=stated_s))
    return bank.length_s(key, maps)


def test_each_class_of_jobs_has_a_model_of_its_own():
    bank = Bank(Config())
    learn_reducers(bank, "sort", seconds=100, number=5)
    now = history([(40, 0.16)])
    assert left_s(bank, "other", now) == pytest.approx(linear_s(now.now))
    assert left_s(bank, "sort", now) != pytest.approx(linear_s(now.now), rel=0.01)


def test_reducers_of_many_classes_are_predicted_at_once():
    bank = Bank(Config())
    learn_reducers(bank, "a", seconds=50, number=3)
    learn_reducers(bank, "b", seconds=200, number=3)
    first, second = history([(10, 0.1)]), history([(30, 0.15)])
    together = bank.left_s(["a", "b", "a"], [first.now, second.now, second.now])
    assert together == pytest.approx([left_s(bank, "a", first), left_s(bank, "b", second), left_s(bank, "a", second)])


def test_only_the_classes_used_last_are_remembered():
    bank = Bank(Config(models_kept=2, programs_kept=2))
    for key in ("a", "b", "a", "c"):
        learn_reducers(bank, key)
    assert [bank.mean_s(key, model.Stage.REDUCE) for key in "abc"] == [100.0, None, 100.0]


def test_a_map_takes_what_others_took_or_what_is_stated_or_the_mean_of_all():
    bank = Bank(Config(map_s=30))
    assert map_s(bank, "a") == 30
    bank.ended("a", model.Stage.MAP, 10)
    bank.ended("a", model.Stage.MAP, 20)
    assert [map_s(bank, "a", 99.0), map_s(bank, "b", 99.0), map_s(bank, "b")] == [15, 99, 15]


def test_the_bank_survives_a_restart():
    bank, after = Bank(Config()), Bank(Config())
    learn_reducers(bank, "sort", number=2)
    bank.ended("sort", model.Stage.MAP, 12)
    after.load(json.loads(json.dumps(bank.dump())))
    now = history([(40, 0.4)])
    assert left_s(after, "sort", now) == left_s(bank, "sort", now)
    assert (map_s(after, "sort"), map_s(after, "x"), after.mean_s("sort", model.Stage.REDUCE)) == (12, 12, 100)


@pytest.mark.parametrize("state", [{}, {"models": 1, "means": [[1]], "maps": None}, {"means": [["a", "map", 1, "x"]]}])
def test_a_bank_reads_any_dump(state):
    bank = Bank(Config())
    bank.load(state)
    assert map_s(bank, "a") == 30
