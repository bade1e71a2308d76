import dataclasses
import json
import uuid

import pytest

from boathouse_e2e import results, runs_page

KILLS = "tests/faults/test_kills.py"

OLD = "| `tests/faults/test_old.py` | 9 | 8 | – | 7.0 | 2025-12-31 |"
PAGE = f"before\n<!-- runs -->\n{runs_page.HEAD}{OLD}\n<!-- /runs -->\nafter\n"


FAULTS = runs_page.PAGES["faults"]


@pytest.fixture
def reports(tmp_path):
    for page in runs_page.PAGES.values():
        for name in (*page.whole, *page.by_file):
            write(tmp_path / page.reports, name, phases_of(f"tests/{name}.py"))
    return tmp_path


def written(reports):
    return runs_page.written(PAGE, FAULTS, reports)


def write(folder, name, *tests):
    folder.mkdir(exist_ok=True)
    rows = [json.dumps(dataclasses.asdict(row)) for rows in tests for row in rows]
    (folder / f"{name}.jsonl").write_text("\n".join(rows))


def phases_of(file=KILLS, outcome="passed", **properties):
    """Return the three phases of a test that took 30 s."""
    row = results.Row(
        test=f"{file}::test_{uuid.uuid4().hex}",
        phase="setup",
        outcome="passed",
        date="2026-01-02",
        sources="",
        wall_s=10.0,
        own_cpu_s=1.0,
        machine_cpu_s=2.0,
        properties={},
    )
    call = dataclasses.replace(row, phase="call", outcome=outcome)
    return row, call, dataclasses.replace(row, phase="teardown", properties=properties)


def test_results_of_one_file_of_tests_are_one_row(reports):
    write(reports, "campaigns", phases_of(kills=3), phases_of(outcome="failed"), phases_of(outcome="skipped"))
    page = written(reports)
    assert "| `tests/faults/test_kills.py` | 2 | 1 | 3 | 1.0 | 2026-01-02 |" in page


def test_a_part_of_make_test_is_one_row(reports):
    assert "| end-to-end, short | 1 | 1 | – | 0.5 | 2026-01-02 |" in written(reports)


def test_rows_of_other_runs_stay_with_their_dates(reports):
    (reports / "e2e.jsonl").unlink()
    page = written(reports)
    assert OLD in page
    assert "end-to-end" not in page


def test_a_row_is_in_the_place_of_the_former_one(reports):
    write(reports, "campaigns", phases_of(), phases_of())
    page = runs_page.written(written(reports), FAULTS, reports)
    assert page.count("test_kills.py") == 1


def test_parts_of_make_test_come_first(reports):
    lines = [line for line in written(reports).splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in lines[1:5]] == [f"| {name}" for name in FAULTS.whole.values()]


def test_the_text_around_the_table_stays(reports):
    page = written(reports)
    assert (page.partition("\n")[0], page.rstrip().rpartition("\n")[2]) == ("before", "after")


def test_without_results_there_is_nothing_to_write(tmp_path):
    with pytest.raises(ValueError, match="has no report"):
        written(tmp_path)


@pytest.mark.parametrize("name", runs_page.PAGES)
def test_a_page_in_docs_has_a_place_for_the_table(reports, name):
    assert runs_page.written(runs_page.path_of(name).read_text(), runs_page.PAGES[name], reports)


def test_a_page_without_a_place_is_refused(reports):
    with pytest.raises(ValueError, match="no place"):
        runs_page.written("nothing", FAULTS, reports)
