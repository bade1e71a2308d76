import pytest

from boathouse_e2e import runs_page

CASE = '<testcase file="tests/faults/test_kills.py" time="30">{}</testcase>'
KILLED = CASE.format('<properties><property name="kills" value="3" /></properties>')
PAGE = "before\n<!-- runs -->\nold\n<!-- /runs -->\nafter\n"


FAULTS = runs_page.PAGES["faults"]


@pytest.fixture
def reports(tmp_path):
    for page in runs_page.PAGES.values():
        for name in (*page.whole, *page.by_file):
            write(tmp_path / page.reports, name, CASE.format(""))
    return tmp_path


def written(reports):
    return runs_page.written(PAGE, FAULTS, reports)


def write(folder, name, *cases):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")


def test_reports_of_one_file_of_tests_are_one_row(reports):
    write(reports, "campaigns", KILLED, CASE.format("<failure />"), CASE.format("<skipped />"))
    page = written(reports)
    assert "| `tests/faults/test_kills.py` | 4 | 3 | 3 | 2.0 |" in page


def test_a_part_of_make_test_is_one_row(reports):
    assert "| end-to-end, short | 1 | 1 | 0.5 |" in written(reports)


def test_kills_have_a_column_if_there_were_any(reports):
    write(reports, "campaigns", KILLED)
    assert "| end-to-end, short | 1 | 1 | – | 0.5 |" in written(reports)


def test_the_text_around_the_table_stays(reports):
    page = written(reports)
    assert "old" not in page
    assert (page.partition("\n")[0], page.rstrip().rpartition("\n")[2]) == ("before", "after")


def test_a_report_that_is_missing_is_an_error(reports):
    (reports / "e2e-long.xml").unlink()
    with pytest.raises(FileNotFoundError):
        written(reports)


@pytest.mark.parametrize("name", runs_page.PAGES)
def test_a_page_in_docs_has_a_place_for_the_table(reports, name):
    assert runs_page.written(runs_page.path_of(name).read_text(), runs_page.PAGES[name], reports)


def test_a_page_without_a_place_is_refused(reports):
    with pytest.raises(ValueError, match="no place"):
        runs_page.written("nothing", FAULTS, reports)
