"""`boathouse board`, as a user calls it, with results that are there already."""

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from boathouse_cli.errors import CommandError
from boathouse_lab.board import page, results
from boathouse_lab.board.cases import Case
from tests.builders.boards import RESULT


@pytest.fixture
def file(tmp_path):
    kept = results.Results(tmp_path / "board.jsonl", results.sources())
    for column in ("fair", "boathouse"):
        kept.add(Case(row="cpu", column=column, seed=2, world=0), RESULT)
    return tmp_path / "board.jsonl"


def board(file, *words):
    one = ("--row", "cpu", "--column", "boathouse", "--seeds", "1", "--worlds", "1", "--results", str(file))
    return CliRunner().invoke(commands.app, ["board", *one, *words])


def test_results_that_are_there_are_shown_without_a_simulation(file):
    shown = board(file, "--jobs", "1")
    assert "2 simulations, of which 2 are in" in shown.stderr
    assert "| CPU-bound (`cpu`) | 2.0 s | 1.00 |" in shown.stdout


def test_the_page_has_the_tables_and_a_picture_beside_it(file, tmp_path):
    (tmp_path / "page.md").write_text(f"head\n{page.BEGIN}{page.END}")
    board(file, "--jobs", "1", "--page", str(tmp_path / "page.md"))
    assert "| 2.0 s | 1.00 |" in (tmp_path / "page.md").read_text()
    assert "<svg" in (tmp_path / "page.svg").read_text()


def test_a_page_without_a_place_for_tables_is_said_before_anything_runs(tmp_path):
    (tmp_path / "page.md").write_text("head\n")
    error = board(tmp_path / "none.jsonl", "--page", str(tmp_path / "page.md")).exception
    assert isinstance(error, CommandError)
    assert "no place" in str(error)


def test_an_unknown_workload_is_an_error_that_lists_the_choices(file):
    error = board(file, "--row", "nothing").exception
    assert "there is no row 'nothing': choose from mix-0.5" in str(error)
