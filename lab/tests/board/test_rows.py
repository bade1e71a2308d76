"""The workloads of the board."""

import pytest

from boathouse_lab.board import columns, demand, rows
from boathouse_lab.board.draws import Style
from boathouse_sim.conditions import RunTimes


@pytest.mark.parametrize("row", rows.ROWS, ids=lambda row: row.name)
def test_each_row_draws_a_workload_that_can_be_simulated(row):
    found = row.draw.workload(2, Style())
    found.check()
    assert all(one.alone_s > 0 for one in demand.of(found))


def test_the_quick_form_has_six_rows_and_four_columns():
    assert sum(row.quick for row in rows.ROWS) == 6
    assert sum(column.quick for column in columns.COLUMNS) == 4


def test_a_row_of_unknown_run_times_tells_nothing_but_to_who_knows_all():
    draw = rows.BY_NAME["unknown"].draw
    known = [draw.workload(2, columns.BY_NAME[name].style).conditions.run_times for name in ("fair", "srpt")]
    assert known == [RunTimes.NOTHING, RunTimes.EXACT]


def test_twice_the_memory_asks_for_twice_the_memory():
    usual, twice = (
        demand.of(rows.BY_NAME[name].draw.workload(2, Style()))[0].phases[0].mem_mb for name in ("mix-0.9", "memory-x2")
    )
    assert twice == 2 * usual
