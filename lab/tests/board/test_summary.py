"""Cells of the board by hand, and their page."""

import dataclasses
import math

import pytest

from boathouse_lab.board import page, summary
from boathouse_lab.board.cases import Case
from tests.builders.boards import RESULT


def runs(column, *means, row="mix-0.9", worlds=1):
    """Results with these means: worlds of a seed first."""
    return {
        Case(row=row, column=column, seed=2 * (place // worlds) + 2, world=place % worlds): dataclasses.replace(
            RESULT, mean_s=mean_s
        )
        for place, mean_s in enumerate(means)
    }


def cell(found, column):
    (one,) = [one for one in summary.cells(found) if one.column == column]
    return one


def test_a_ratio_is_the_geometric_mean_over_seeds():
    found = cell(runs("fair", 10.0, 10.0) | runs("boathouse", 5.0, 20.0), "boathouse")
    assert found.over_fair["mean"].value == pytest.approx(1.0)
    low, high = found.over_fair["mean"].interval
    assert low * high == pytest.approx(1.0)
    assert math.log(high) == pytest.approx(12.706 * math.log(2), rel=1e-3)  # t of one degree of freedom


def test_worlds_of_a_seed_count_as_one():
    found = cell(runs("fair", 10.0, 10.0, worlds=2) | runs("boathouse", 4.0, 6.0, worlds=2), "boathouse")
    assert (found.seeds, found.over_fair["mean"].value) == (1, pytest.approx(0.5))
    assert found.over_fair["mean"].interval is None


def test_the_best_that_knows_all_is_shown_where_it_gains_a_tenth():
    schedulers = ("srpt", "srpt-elastic", "search", "search-elastic")

    def shown(least):
        found = runs("fair", 10.0)
        for place, name in enumerate(schedulers):
            found |= runs(name, least + place)
        return [one.over_fair["mean"].value for one in page.shown(summary.cells(found)) if one.column == "near-optimal"]

    assert shown(8.0) == [pytest.approx(0.8)]
    assert shown(9.5) == []


def test_the_page_says_what_each_part_is_worth():
    found = summary.cells(runs("fair", 10.0) | runs("boathouse", 8.0) | runs("without fspy", 16.0))
    assert cell(runs("fair", 10.0) | runs("boathouse", 8.0), "fair").of_boathouse.value == pytest.approx(0.8)
    assert "| workload | over without fspy |\n|---|---|\n| `mix-0.9` | 0.50 |" in page.tables(found)
    assert "without" not in page.tables(summary.cells(runs("fair", 10.0) | runs("boathouse", 8.0)))


def test_a_page_has_the_tables_between_its_marks():
    found = summary.cells(runs("fair", 10.0) | runs("boathouse", 8.0))
    text = page.written(f"head\n{page.BEGIN}old\n{page.END}tail\n", found, "test")
    assert "| 10.0 s | 0.80 |" in text
    assert "old" not in text
    assert text.startswith("head\n")
    with pytest.raises(ValueError, match="no place"):
        page.written("nothing", found, "test")


def test_the_picture_has_a_bar_for_each_row_that_was_run():
    found = summary.cells(runs("fair", 10.0) | runs("boathouse", 8.0))
    (panel,) = page.picture(found).panels
    assert panel.categories == ("mix-0.9",)
    assert (0.8,) in [tuple(mark.values) for mark in panel.marks if hasattr(mark, "values")]


def test_a_board_of_one_paper_has_its_column_in_table_and_picture_and_nothing_of_boathouse():
    found = summary.cells(runs("fair", 10.0) | runs("fspy", 9.0))
    assert "boathouse" not in page.tables(found)
    (panel,) = page.picture(found).panels
    assert [mark.label for mark in panel.marks] == ["fspy", "fair"]
