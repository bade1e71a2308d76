"""Which predictor has predicted a program best so far."""

import json
import math

import pytest

from boathouse_policies.framework.programs import FEW, MOST, Contest


def judged(errors, times=FEW) -> Contest:
    contest = Contest(kept=8, predictors=2)
    for _ in range(times):
        contest.judge("ns/a", errors)
    return contest


def test_the_first_predicts_until_a_few_predictions_were_judged():
    assert judged((0.5, 0.1), FEW - 1).best("ns/a") == 0
    assert judged((0.5, 0.1), FEW - 1).error("ns/a") is None


def test_then_the_one_with_the_least_error_does():
    contest = judged((0.5, 0.1))
    assert (contest.best("ns/a"), contest.error("ns/a")) == (1, pytest.approx(0.1))
    assert contest.best("ns/other") == 0


def test_of_equal_ones_the_first_does():
    assert judged((0.2, 0.2)).best("ns/a") == 0


def test_what_was_best_long_ago_is_not_taken_for_ever():
    contest = judged((0.5, 0.1), 100)
    for _ in range(20):
        contest.judge("ns/a", (0.1, 0.9))
    assert contest.best("ns/a") == 0


@pytest.mark.parametrize("wild", [math.inf, math.nan, 1e300])
def test_a_wild_error_counts_as_the_largest(wild):
    assert judged((wild, MOST)).error("ns/a") == MOST


def test_standings_survive_a_restart():
    after = Contest(kept=8, predictors=2)
    after.load(json.loads(json.dumps(judged((0.5, 0.1)).dump())))
    assert (after.best("ns/a"), after.error("ns/a")) == (1, 0.1)


@pytest.mark.parametrize(
    "state", [None, [], {"ns/a": 1}, {"ns/a": [9, 0.1]}, {"ns/a": [9, 0.1, "x"]}, {"ns/a": [9, 0.1, -1]}]
)
def test_what_is_no_dump_of_these_predictors_is_left_out(state):
    contest = Contest(kept=8, predictors=2)
    contest.load(state)
    assert contest.error("ns/a") is None


def test_programs_are_bounded_and_can_be_forgotten():
    contest = Contest(kept=2, predictors=1)
    for number in range(9):
        contest.judge(f"ns/{number}", (0.1,))
    assert len(contest.dump()) == 2
    contest.forget("ns/8")
    assert len(contest.dump()) == 1
