"""What stays different from Hadoop Streaming: what Hadoop wrote, as recorded, and what Boathouse writes."""

import pathlib
import re

import pytest

from tests.streaming import differences, ours, record

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "coming-from-hadoop.md"
SAME = ("early end", "TAB in a key", "overlapping delimiters", "combiner of other keys")
"""Differences that the page names below its table, because they change no script that Hadoop runs."""

TYPED_LINES = b"04000000000000000007000000026162040000000000000003070000000163"
"""A long (4) with the position of each line, and its text (7) with its length, in hexadecimal."""
RAW_LINES = b"00000008000000000000000000000003026162000000080000000000000003000000020163"
"""The same as Writables, each after its length."""


@pytest.mark.parametrize(
    ("name", "hadoop", "boathouse"),
    [
        pytest.param("typed bytes", [TYPED_LINES + b"\t\n"], [b"61620a630a\t\n"], id="typed bytes"),
        pytest.param("raw bytes", [RAW_LINES + b"\t\n"], [b"61620a630a\t\n"], id="raw bytes"),
        pytest.param("mapper of Java", [b"b\ta\nv\tk\n"], None, id="mapper of Java"),
        pytest.param(
            "XML records",
            [b"<page>one</page>\t\n<page>two</page>\t\n<page>three</page>\t\n"],
            [b"<doc><page>one</page><page>two</page>\t\n <page>three</page></doc>\t\n"],
            id="XML records",
        ),
        pytest.param("bzip2 splits", [b"6058\t\n", b"2942\t\n"], [b"9000\t\n"], id="bzip2 splits"),
        pytest.param("aggregate package", [b"a\t3\nb\t2\n"], None, id="aggregate package"),
        pytest.param("several inputs", [b"u1\tAnn\nu1\tshoes\n"], [b"Ann\tu1\nu1\tshoes\n"], id="several inputs"),
        pytest.param("early end", None, [b"line\t\n"], id="early end"),
        pytest.param("TAB in a key", [b"\x01\t1\n\t\t2\na\t3\n"], [b"\t\t2\n\x01\t1\na\t3\n"], id="TAB in a key"),
        pytest.param(
            "overlapping delimiters",
            [b"aaaaaa\t\n\t\n", b"|bbbbbb\t\n", b""],
            [b"aaaaaa\t\n|\t\n", b"|bbbbbb\t\n", b""],
            id="overlapping delimiters",
        ),
        pytest.param("combiner of other keys", [b"same\t7\n", b"same\t7\n"], [b"", b"same\t14\n"], id="combiner"),
    ],
)
def test_each_side_writes_what_the_page_says(tmp_path, name, hadoop, boathouse):
    assert contents(of_hadoop(name)) == hadoop
    assert contents(ours.run(differences.ALL[name].job, tmp_path)) == boathouse


@pytest.mark.parametrize(
    "name", [name for name, difference in differences.ALL.items() if difference.advice is not None]
)
def test_the_advice_of_the_page_writes_what_hadoop_writes(tmp_path, name):
    advice = differences.ALL[name].advice
    assert ours.run(advice, tmp_path) == of_hadoop(name)


def test_every_row_of_the_page_has_a_job():
    table = PAGE.read_text().partition("## What differs\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!Hadoop|---)(.*?) \|", table, re.MULTILINE)
    named = {difference.row for name, difference in differences.ALL.items() if name not in SAME}
    assert sorted(row for row in rows if not any(row.startswith(named_row) for named_row in named)) == []
    assert sorted(named_row for named_row in named if not any(row.startswith(named_row) for row in rows)) == []


@pytest.mark.parametrize("name", SAME)
def test_the_page_names_these_too(name):
    assert differences.ALL[name].row in PAGE.read_text().partition("## What differs\n")[2].lower()


def test_the_recording_is_of_these_jobs():
    expected = {name: record.difference_digest(difference) for name, difference in differences.ALL.items()}
    assert {name: recording["job"] for name, recording in record.recorded_differences().items()} == expected


def of_hadoop(name):
    return record.bytes_of(record.recorded_differences()[name]["parts"])


def contents(parts):
    """Return the files in the order of their names."""
    return parts and [parts[name] for name in sorted(parts)]
