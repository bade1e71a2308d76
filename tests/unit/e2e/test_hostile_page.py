import pytest

from boathouse_e2e import hostile_page

PAGE = "before\n<!-- attacks -->\nold\n<!-- /attacks -->\nbetween\n<!-- placement -->\n<!-- /placement -->\nafter\n"
ROWS = [
    {"attack": "a pod of 10P", "writes": 3, "lease_gap_s": 2.049, "memory_mib": 110},
    {"placement": "forged pods", "pairs": 5, "alone_s": 0.5, "beside_s": 0.25},
]


def test_each_table_gets_its_rows_and_the_text_around_stays():
    page = hostile_page.written(PAGE, ROWS)
    assert "| a pod of 10P | 3 |  |  |  | 2.05 | 110 |" in page
    assert "| forged pods | 5 | 0.50 | 0.25 |" in page
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")


def test_the_page_in_docs_has_a_place_for_each_table():
    assert hostile_page.written(hostile_page.PAGE.read_text(), ROWS)


def test_a_page_without_a_place_is_refused():
    with pytest.raises(ValueError, match="no place for the table of attacks"):
        hostile_page.written("nothing", ROWS)
