"""What a claim means, what an interval is, and that results do not depend on who simulates."""

import json

import pytest

from boathouse_lab.reproduce import claim, interval, studies, study
from tests.builders import reproductions


@pytest.mark.parametrize(
    ("relation", "paper", "span", "holds"),
    [
        ("ge", 0.5, (0.5, 0.7), True),
        ("ge", 0.5, (0.49, 0.7), False),
        ("le", 0.5, (0.3, 0.5), True),
        ("le", 0.5, (0.3, 0.51), False),
        ("between", (0.4, 0.6), (0.4, 0.6), True),
        ("between", (0.4, 0.6), (0.39, 0.6), False),
        ("between", (0.4, 0.6), (0.4, 0.61), False),
        ("eq", 0.5, (0.4, 0.6), True),
        ("eq", 0.5, (0.51, 0.6), False),
        ("eq", 0.5, (0.4, 0.49), False),
    ],
)
def test_a_claim_holds_when_the_whole_interval_meets_it(relation, paper, span, holds):
    assert reproductions.claim(relation, paper, value=sum(span) / 2, interval=span).holds is holds


def test_without_an_interval_the_value_decides():
    assert reproductions.claim("ge", 0.5, value=0.5).holds
    assert not reproductions.claim("ge", 0.5, value=0.49).holds


def test_an_equality_may_have_a_tolerance():
    assert reproductions.claim("eq", 0.5, value=0.55, tolerance=0.06).holds
    assert not reproductions.claim("eq", 0.5, value=0.57, tolerance=0.06).holds


def test_without_a_value_nothing_holds():
    assert not reproductions.claim("le", 0.5, value=None).holds


def test_a_row_whose_mean_alone_meets_the_claim_says_so_before_its_reason():
    wide = reproductions.claim("ge", 0.5, value=0.6, interval=(0.4, 0.8), reason="Disks.")
    assert wide.why.startswith("The mean meets it")
    assert wide.why.endswith("Disks.")
    assert reproductions.claim("ge", 0.5, value=0.4, interval=(0.3, 0.5), reason="Disks.").why == "Disks."


@pytest.mark.parametrize(("relation", "paper"), [("between", 0.5), ("ge", (0.4, 0.5))])
def test_only_between_has_two_values(relation, paper):
    with pytest.raises(ValueError, match="two values"):
        reproductions.claim(relation, paper)


def test_only_an_equality_has_a_tolerance():
    with pytest.raises(ValueError, match="tolerance"):
        reproductions.claim("ge", 0.5, tolerance=0.1)


def test_programs_read_the_fields_that_were_agreed():
    found = json.loads(json.dumps(reproductions.claim("between", (0.4, 0.6), interval=(0.5, 0.7)).as_json()))
    agreed = {"paper", "claim", "figure", "relation", "paper_value", "value", "interval", "baseline", "holds"}
    assert agreed | {"assumptions"} <= set(found)
    assert (found["relation"], found["paper_value"], found["interval"]) == ("between", [0.4, 0.6], [0.5, 0.7])


def test_the_interval_is_students():
    found = interval.mean([1.0, 2.0, 3.0])  # t(0.975, 2) = 4.302653, s/sqrt(3) = 0.577350
    assert found.value == pytest.approx(2.0)
    assert found.interval == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-5)


def test_one_run_has_no_interval():
    assert interval.mean([4.0]).interval is None


def test_a_gain_is_paired_seed_by_seed():
    found = interval.gain([50.0, 5.0], [100.0, 10.0])
    assert (found.value, found.interval) == (0.5, (0.5, 0.5))


def test_what_is_not_finite_has_no_mean():
    with pytest.raises(ValueError, match="finite"):
        interval.mean([1.0, float("nan")])


def test_an_estimate_fills_a_claim():
    fields = claim.measured(interval.mean([1.0, 1.0]))
    assert fields == {"value": 1.0, "interval": (1.0, 1.0), "seeds": 2}


@pytest.mark.parametrize("workers", [1, 2])
def test_results_keep_the_order_of_their_cases(workers):
    with study.Runner(workers=workers) as runner:
        assert runner.map("squares", reproductions.square, [3, 1, 2], cost=float) == [9, 1, 4]


def test_progress_hears_of_every_simulation():
    progress = Progress()
    with study.Runner(workers=1, progress=progress) as runner:
        runner.map("squares", reproductions.square, [1, 2])
    assert progress.calls == [("squares", 2), "advance", "advance"]


def test_the_quick_form_has_fewer_seeds_unless_a_number_is_given():
    quick, full = study.Form.QUICK, study.Form.FULL
    assert [study.Scale.of(quick).seeds, study.Scale.of(full).seeds, study.Scale.of(quick, 7).seeds] == [3, 10, 7]


def test_the_error_for_an_unknown_paper_names_the_choices():
    with pytest.raises(ValueError, match="choose from"):
        studies.chosen("yarn-you")


class Progress:
    def __init__(self):
        self.calls = []

    def begin(self, what, total):
        self.calls.append((what, total))

    def advance(self):
        self.calls.append("advance")
