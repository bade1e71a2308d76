"""Records as Hadoop's LineRecordReader cuts them, at any borders and in any windows; what was seen of Hadoop 3.4.2."""

import gzip
import itertools
import re

import pytest
from hypothesis import given, settings, strategies as st

from boathouse_task import lines, reader
from boathouse_task.contract import LF_ONLY, InputFormat, InputFormatType, OutputFormat
from tests.unit.task.test_input import read_all

ANY = InputFormat()
MARK = b"\xef\xbb\xbf"
CR_TEXT = st.text(alphabet="ab\r\n", max_size=24).map(str.encode)


def expected_shares(content: bytes, borders: list[int], end: bytes) -> list[bytes]:
    """The reference: a record belongs to the split in which it starts; at a border, to the one before."""
    shares = [b""] * (len(borders) + 1)
    ends = [0, *(match.end() for match in re.finditer(end, content))]
    starts = [offset for offset in ends if offset < len(content)]
    for start, stop in itertools.pairwise([*starts, len(content)]):
        shares[sum(border < start for border in borders)] += re.sub(end, b"\n", content[start:stop])
    return [share if share.endswith(b"\n") or not share else share + b"\n" for share in shares]


@settings(deadline=None)
@given(CR_TEXT, st.data())
def test_lines_with_any_end_are_read_once_at_any_borders_and_windows(tmp_path_factory, content, data):
    borders = sorted(data.draw(st.sets(st.integers(1, max(1, len(content))), max_size=3))) if content else []
    shares = read_all(tmp_path_factory.mktemp("r"), content, borders, data.draw(st.integers(1, 30)), ANY)
    assert b"".join(shares) == b"".join(expected_shares(content, [], rb"\r\n?|\n"))
    assert shares == expected_shares(content, borders, rb"\r\n?|\n")


@settings(deadline=None)
@given(st.text(alphabet="|:a\n", max_size=24).map(str.encode), st.data())
def test_records_with_a_delimiter_are_read_once_at_any_borders_and_windows(tmp_path_factory, content, data):
    form = InputFormat(record_delimiter="|:")
    borders = sorted(data.draw(st.sets(st.integers(1, max(1, len(content))), max_size=3))) if content else []
    shares = read_all(tmp_path_factory.mktemp("r"), content, borders, data.draw(st.integers(1, 30)), form)
    *whole, rest = content.split(b"|:")
    assert b"".join(shares) == b"".join(record + b"\n" for record in [*whole, *([rest] if rest else [])])


@pytest.mark.parametrize("window", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("content", "borders", "expected"),
    [
        pytest.param(b"a\r\nb\rc\nd", [], [b"a\nb\nc\nd\n"], id="all ends"),
        pytest.param(b"a\r\nb\r\n", [2], [b"a\n", b"b\n"], id="border between CR and LF"),
        pytest.param(b"a\r\nb\r\n", [3], [b"a\nb\n", b""], id="border after CRLF"),
        pytest.param(b"a\rb\rc", [2], [b"a\nb\n", b"c\n"], id="border after CR"),
        pytest.param(b"a\r", [], [b"a\n"], id="CR as the last byte"),
        pytest.param(b"\r\n\r\r\n\n", [], [b"\n\n\n\n"], id="empty lines"),
        pytest.param(MARK + b"a\n" + MARK + b"b", [], [b"a\n" + MARK + b"b\n"], id="byte order mark at the start only"),
        pytest.param(MARK, [], [b""], id="nothing but a byte order mark"),
        pytest.param(MARK + b"\n", [], [b"\n"], id="an empty line after a byte order mark"),
        pytest.param(MARK[:2] + b"a", [], [MARK[:2] + b"a\n"], id="half a byte order mark"),
    ],
)
def test_lines_end_where_hadoop_ends_them(tmp_path, content, borders, expected, window):
    assert read_all(tmp_path, content, borders, window, ANY) == expected


@pytest.mark.parametrize("window", [1, 3, 100])
@pytest.mark.parametrize(
    ("delimiter", "expected"),
    [
        ("||", b"x\ny\nz\n\r\nab\nw|aaaab\n"),
        ("ab", b"x||y\nz||\r\n\n||w|aaa\n||\n"),
        ("aa", b"x||y\nz||\r\nab||w|\n\nb||\n"),
    ],
)
def test_a_delimiter_alone_ends_records(tmp_path, delimiter, expected, window):
    content = MARK + b"x||y\nz||\r\nab||w|aaaab||"
    assert read_all(tmp_path, content, [], window, InputFormat(record_delimiter=delimiter)) == [expected]


def test_lines_may_end_at_lf_only(tmp_path):
    content = MARK + b"a\r\nb\rc"
    assert read_all(tmp_path, content, [], 4, InputFormat(record_delimiter=LF_ONLY)) == [content + b"\n"]


@pytest.mark.parametrize("window", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("form", "content", "expected"),
    [
        (InputFormat(ignore_key=False), b"aa\r\nb\rccc\n\ndd\re", b"0\taa\n4\tb\n6\tccc\n10\t\n11\tdd\n14\te\n"),
        (InputFormat(ignore_key=False), MARK + b"aa\nb\nc", b"0\taa\n6\tb\n8\tc\n"),
        (InputFormat(ignore_key=False), MARK, b""),
        (InputFormat(ignore_key=False), b"a\r", b"0\ta\n"),
        (InputFormat(ignore_key=False, record_delimiter="::"), b"a::b\n:c::", b"0\ta\n3\tb\n:c\n"),
        (InputFormat(ignore_key=False, field_separator="|"), b"a\nb", b"0|a\n2|b\n"),
    ],
)
def test_the_mapper_may_read_the_position_of_each_record(tmp_path, form, content, expected, window):
    assert read_all(tmp_path, content, [], window, form) == [expected]


def test_positions_count_from_the_start_of_the_file_in_each_split(tmp_path):
    content = b"aa\r\nb\rccc\n\ndd\re"
    shares = read_all(tmp_path, content, [5, 11], 3, InputFormat(ignore_key=False))
    assert shares == [b"0\taa\n4\tb\n", b"6\tccc\n10\t\n11\tdd\n", b"14\te\n"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, b"k,v\tw\nno\t\n,x\t\ny,\t\n\t\n"),
        ({"key_value_separator": ","}, b"k\tv\tw\nno\t\n\tx\ny\t\n\t\n"),
        ({"key_value_separator": ",", "field_separator": "|"}, b"k|v\tw\nno|\n|x\ny|\n|\n"),
        ({"key_value_separator": ",", "ignore_key": True}, b"v\tw\n\nx\n\n\n"),
    ],
)
def test_keys_and_values_of_the_input_are_separated(job_folder, fields, expected):
    job_folder.write_input("a", b"k,v\tw\nno\n,x\ny,\n\n")
    form = InputFormat(type=InputFormatType.KEY_VALUE, **fields)
    job_folder.run_job(input_format=form, output_format=OutputFormat(key_only=True))
    assert job_folder.parts() == [expected]


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, [b"6\tccc\n", b"0\taa\n", b"11\tdd\n", b"4\tb\n", b"10\t\n", b"14\te\n"]),
        (2, [b"0\taa\n4\tb\n", b"6\tccc\n10\t\n", b"11\tdd\n14\te\n"]),
        (100, [b"0\taa\n4\tb\n6\tccc\n10\t\n11\tdd\n14\te\n"]),
    ],
)
def test_each_map_reads_so_many_lines(job_folder, number, expected):
    job_folder.write_input("a", b"aa\r\nb\rccc\n\ndd\re")
    job_folder.run_job(input_format=InputFormat(type=InputFormatType.N_LINE, lines_per_map=number))
    assert job_folder.parts() == expected


def test_an_empty_file_has_no_lines_for_a_map(job_folder):
    job_folder.write_input("a", b"")
    job_folder.run_job(["echo", "ran"], input_format=InputFormat(type=InputFormatType.N_LINE))
    assert job_folder.output_names() == ["_SUCCESS"]


def test_too_many_lines_for_a_plan_are_refused_before_the_file_is_read_to_its_end(job_folder, monkeypatch):
    monkeypatch.setattr("boathouse_task.setup_task.MOST_SPLITS", 10)
    job_folder.write_input("a", b"x\n" * 1000)
    result = job_folder.fail_job(input_format=InputFormat(type=InputFormatType.N_LINE))
    assert result.message == "the input has more than 10 times 1 lines: raise linesPerMap"


def test_compressed_input_ends_its_lines_alike(job_folder):
    job_folder.write_input("a.gz", gzip.compress(MARK + b"x\r\ny\r"))
    job_folder.run_job(input_format=InputFormat(ignore_key=False))
    assert job_folder.parts() == [b"0\tx\n6\ty\n"]


@given(st.lists(CR_TEXT))
def test_line_ends_are_found_across_chunks(chunks):
    whole = b"".join(chunks)
    expected = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert b"".join(lines.ended_by_newlines(chunks)) == expected


@given(st.lists(st.text(alphabet="ab", max_size=8).map(str.encode)), st.sampled_from([b"a", b"ab", b"aa", b"aba"]))
def test_delimiters_are_found_across_chunks(chunks, delimiter):
    *whole, rest = b"".join(chunks).split(delimiter)
    expected = b"".join(record + b"\n" for record in [*whole, *([rest] if rest else [])])
    assert b"".join(lines.delimited(chunks, delimiter)) == expected


@given(CR_TEXT, st.integers(1, 5))
def test_positions_after_records_are_those_of_their_ends(content, size):
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    ends = [match.end() for match in re.finditer(rb"\r\n?|\n", content)]
    if content and content[-1:] not in b"\r\n":
        ends.append(len(content))
    assert list(reader.record_ends(chunks, ANY, 24, "it")) == ends
