"""The profile `boathouse` beside each policy alone."""

from boathouse_lab.reproduce.combination import ALONE, LOADS, PAPER, Combination
from boathouse_lab.reproduce.study import Form, Runner, Scale
from tests.builders import reproductions


def test_every_load_has_a_row_for_each_policy_alone():
    found = Combination(pairs=1).run(Scale.of(Form.QUICK, 1), Runner(workers=1))
    assert len(found.claims) == len(LOADS) * len(ALONE)
    reproductions.assert_catalogued(PAPER, found.claims)
    assert all(0.3 < row.value < 3 and row.paper_value == 1.05 for row in found.claims)
    assert [mark.label for mark in found.figures[0].panels[0].marks] == [PAPER, *ALONE]
