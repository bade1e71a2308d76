"""`boathouse reproduce`, as a user calls it, with a study that takes no time."""

import json

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_lab.cli import drawing, text
from boathouse_lab.reproduce import figures, studies, values
from tests.builders import reproductions
from tests.builders.cli import printed


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setattr(studies, "_STUDIES", {"toy": reproductions.Toy})


def reproduce(*words: str):
    return CliRunner().invoke(commands.app, ["reproduce", *words])


def test_a_table_says_what_holds():
    shown = reproduce("toy", "--quick", "--workers", "1").stdout
    assert "The toy is faster" in shown
    assert "1 of 1 claims hold" in shown


def test_a_table_shows_each_claims_id_and_class():
    shown = reproduce("toy", "--quick", "--workers", "1").stdout
    assert "toy-faster" in shown
    assert "figure" in shown


def test_a_baselines_unit_in_brackets_is_shown():
    table = text.claims([reproductions.claim(baseline=2.0, baseline_name="fair: mean job time [s]")])
    assert "mean job time [s] 2" in printed(table)


def test_a_claim_that_does_not_hold_is_a_result():
    done = reproduce("toy", "--seeds", "1", "--workers", "1")  # 0 is not above 0.5
    assert "does not hold" in done.stdout
    assert done.exit_code == 0


def test_json_is_a_list_of_claims():
    found = json.loads(reproduce("--quick", "--json", "--workers", "1").stdout)
    assert [(one["paper"], one["value"], one["holds"]) for one in found] == [("toy", 5.0, True)]
    assert [(one["id"], one["kind"], one["line"]) for one in found] == [("toy-faster", "figure", 7)]


def test_the_page_needs_nothing_from_elsewhere(tmp_path):
    reproduce("toy", "--quick", "--workers", "1", "--report", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 1
    assert "“our toy is faster” (line 7)" in page
    assert not [word for word in ("<script", "<link", 'src="', "@import") if word in page]


def test_an_unknown_paper_is_an_error_that_lists_the_choices():
    error = reproduce("tay").exception
    assert isinstance(error, CommandError)
    assert error.code is ExitCode.USAGE
    assert "choose from toy, all" in str(error)


def test_a_page_that_cannot_be_written_is_said_before_anything_runs(tmp_path):
    error = reproduce("toy", "--report", str(tmp_path / "no" / "page.html")).exception
    assert "cannot be written" in str(error)


def test_help_names_every_paper():
    assert "all" in reproduce("--help").stdout


@pytest.mark.parametrize(
    "mark",
    [
        figures.Line(label="a", x=(1, 2), y=(2, 1), low=(1, 0.5), high=(3, 2), step=True, markers=True),
        figures.Points(label="a", x=(1,), y=(2,), paper=True),
        figures.cdf("a", [3.0, 1.0]),
        figures.Bars(label="a", values=(1.0, None), low=(0.5, 0.0), high=(2.0, 0.0)),
        figures.Level(label="a", at=1.0),
        figures.Level(label="a", at=1.0, upright=True, paper=True),
    ],
)
def test_every_mark_is_drawn_the_same_each_time(mark):
    picture = reproductions.figure(reproductions.panel(mark, figures.Level(label="b", at=2.0), categories=("x", "y")))
    drawn = drawing.to_svg(picture)
    assert drawn == drawing.to_svg(picture)
    assert drawn.startswith("<svg")
    assert ">b</text>" in drawn


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(0.614, "%", "61.4 %"), (0.5, "%", "50 %"), (2321.46, "s", "2,321 s"), (0.7, "", "0.7"), (None, "s", "none")],
)
def test_numbers_have_their_units(value, unit, shown):
    assert values.number(value, unit) == shown
