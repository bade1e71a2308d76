"""The file of results: what is in it is not simulated again."""

import dataclasses

from boathouse_lab.board.cases import Case
from boathouse_lab.board.plan import Plan
from boathouse_lab.board.results import Results
from tests.builders.boards import RESULT

CASE = Case(row="mix-0.9", column="fair", seed=2, world=0)


def test_results_are_there_again_and_those_of_other_code_are_not(tmp_path):
    Results(tmp_path / "r", "code").add(CASE, RESULT)
    assert Results(tmp_path / "r", "code").found == {CASE: RESULT}
    assert Results(tmp_path / "r", "other").found == {}


def test_a_line_that_was_cut_off_costs_itself_alone(tmp_path):
    Results(tmp_path / "r", "code").add(CASE, RESULT)
    with (tmp_path / "r").open("a") as file:
        file.write('{"code": "co')
    other = dataclasses.replace(CASE, world=1)
    Results(tmp_path / "r", "code").add(other, RESULT)
    assert set(Results(tmp_path / "r", "code").found) == {CASE, other}


class NoRunner:
    def map(self, *_words, **_options):
        raise AssertionError("nothing is left to simulate")


def test_a_plan_whose_results_are_there_simulates_nothing(tmp_path):
    plan = Plan(rows=["mix-0.9"], columns=["fair"], seeds=[2], worlds=1)
    results = Results(tmp_path / "r", "code")
    results.add(CASE, RESULT)
    assert plan.carry_out(results, NoRunner()) == {CASE: RESULT}


def test_even_seeds_are_reported_and_odd_ones_are_for_tuning():
    assert Plan.of(quick=True).seeds == [2, 4]
    assert Plan.of(quick=True, tuning=True).seeds == [1, 3]
