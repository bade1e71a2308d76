import pytest

from boathouse_e2e import faults_page

CASE = '<testcase file="tests/faults/test_kills.py" time="30">{}</testcase>'
KILLED = CASE.format('<properties><property name="kills" value="3" /></properties>')
PAGE = "before\n<!-- runs -->\nold\n<!-- /runs -->\nafter\n"


@pytest.fixture
def reports(tmp_path):
    for name in (*faults_page.WHOLE, *faults_page.CAMPAIGNS):
        write(tmp_path, name, CASE.format(""))
    return tmp_path


def write(folder, name, *cases):
    (folder / f"{name}.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")


def test_reports_of_one_file_of_tests_are_one_row(reports):
    write(reports, "campaigns", KILLED, CASE.format("<failure />"), CASE.format("<skipped />"))
    page = faults_page.written(PAGE, reports)
    assert "| `tests/faults/test_kills.py` | 4 | 3 | 3 | 2.0 |" in page


def test_a_part_of_make_test_is_one_row(reports):
    assert "| end-to-end, short | 1 | 1 | – | 0.5 |" in faults_page.written(PAGE, reports)


def test_the_text_around_the_table_stays(reports):
    page = faults_page.written(PAGE, reports)
    assert "old" not in page
    assert (page.partition("\n")[0], page.rstrip().rpartition("\n")[2]) == ("before", "after")


def test_a_report_that_is_missing_is_an_error(reports):
    (reports / "e2e-long.xml").unlink()
    with pytest.raises(FileNotFoundError):
        faults_page.written(PAGE, reports)


def test_the_page_in_docs_has_a_place_for_the_table(reports):
    assert faults_page.written(faults_page.PAGE.read_text(), reports)


def test_a_page_without_a_place_is_refused(reports):
    with pytest.raises(ValueError, match="no place"):
        faults_page.written("nothing", reports)
