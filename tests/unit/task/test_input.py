import itertools

import pytest
from hypothesis import given, strategies as st

from boathouse_task import lines, locations, reader, splits
from boathouse_task.contract import LF_ONLY, InputFile, InputFormat, Split
from boathouse_task.errors import TaskError
from boathouse_task.storage import Storage


def test_an_s3_url_names_bucket_and_key():
    location = locations.parse("s3://bucket/books/a.txt")
    assert (location.scheme, location.bucket, location.path) == ("s3", "bucket", "books/a.txt")
    assert location.url == "s3://bucket/books/a.txt"


def test_a_bucket_alone_is_its_root():
    assert locations.parse("s3://bucket").path == ""


@pytest.mark.parametrize("url", ["", "books", "s3:///key", "file://host/x", "hdfs:///x", "hdfs://a@b/x", "file:///"])
def test_other_urls_are_refused(url):
    with pytest.raises(TaskError, match="InvalidURL"):
        locations.parse(url)


def test_a_password_in_a_url_is_not_shown():
    with pytest.raises(TaskError) as failed:
        locations.parse("hdfs://user:geheim@namenode/x")
    assert "geheim" not in str(failed.value)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", ["a"]),
        ("a{b,c}d", ["abd", "acd"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"]),
        ("{a,}x", ["ax", "x"]),
        ("a{b", ["a{b"]),
        ("{a}{b,c}", ["ab", "ac"]),
    ],
)
def test_braces_are_alternatives(pattern, expected):
    assert list(locations.expand_braces(pattern)) == expected


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("in/*.txt", "in/a.txt", True),
        ("in/*.txt", "in/a.gz", False),
        ("in/*", "in/sub/a.txt", True),
        ("in/*", "in/_logs", False),
        ("in/*", "in/sub/_hidden/a", False),
        ("in/_*", "in/_logs", True),
        ("in/?", "in/ab", False),
        ("in/[ab]1", "in/b1", True),
        ("in/[^ab]1", "in/b1", False),
        ("in/[!ab]1", "in/c1", True),
        ("in/[a-c]1", "in/b1", True),
        ("in/*/x", "in/a/b/x", False),
        ("in/a+*", "in/a+b", True),
        ("in/*", "in", False),
    ],
)
def test_wildcards_match_as_hadoops(pattern, path, expected):
    assert locations.matches(pattern, path) is expected


def test_a_files_last_split_may_be_a_tenth_larger():
    plan = splits.plan([InputFile(url="u", size_bytes=210)], split_max_bytes=100)
    assert [(split.offset_bytes, split.length_bytes) for split in plan.splits] == [(100, 110), (0, 100)]


def test_maps_are_numbered_by_the_size_of_their_splits_as_in_hadoop():
    files = [InputFile(url=name, size_bytes=size) for name, size in (("a", 10), ("b", 30), ("c", 10), ("d", 0))]
    assert [split.url for split in splits.plan(files, split_max_bytes=100).splits] == ["b", "a", "c", "d"]


def test_an_empty_file_is_an_empty_split():
    (split,) = splits.plan([InputFile(url="u", size_bytes=0)], split_max_bytes=100).splits
    assert split.length_bytes == 0


@given(st.lists(st.integers(0, 5000), max_size=5), st.integers(1, 1000))
def test_splits_cover_every_file_once_in_order(sizes, limit):
    files = [InputFile(url=str(number), size_bytes=size) for number, size in enumerate(sizes)]
    plan = splits.plan(files, split_max_bytes=limit)
    assert plan.bytes_total == sum(sizes)
    for file in files:
        mine = sorted((split for split in plan.splits if split.url == file.url), key=lambda split: split.offset_bytes)
        assert [split.offset_bytes for split in mine] == [0, *itertools.accumulate(s.length_bytes for s in mine)][:-1]
        assert sum(split.length_bytes for split in mine) == file.size_bytes
        assert all(split.length_bytes <= limit * splits.SPLIT_SLOP for split in mine)


LF = InputFormat(record_delimiter=LF_ONLY)


def read_all(folder, content: bytes, borders: list[int], window_bytes: int, form=LF) -> list[bytes]:
    path = folder / "file"
    path.write_bytes(content)
    storage = Storage(None, {}, part_bytes=1 << 20)
    pairs = itertools.pairwise([0, *borders, len(content)])
    given_splits = [
        Split(url=f"file://{path}", offset_bytes=start, length_bytes=end - start, size_bytes=len(content))
        for start, end in pairs
    ]
    return [b"".join(reader.read_split(storage, split, form, window_bytes, 1 << 20)) for split in given_splits]


def hadoop_splits(content: bytes, borders: list[int]) -> list[bytes]:
    """The reference: a line belongs to the split in which it starts; at a border, to the one before."""
    shares = [b""] * (len(borders) + 1)
    content += b"\n" if content and not content.endswith(b"\n") else b""
    start = 0
    for line in content.splitlines(keepends=True) if b"\r" not in content else content.split(b"\n"):
        shares[sum(border < start for border in borders)] += line
        start += len(line)
    return shares


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a", b"ab\ncd\n", b"ab\n\n\ncd", b"\n\nabc\n", b"abcdefgh", b"a\nb\nc\nd\n"]
)
def test_lines_at_any_two_borders_belong_to_the_split_in_which_they_start(tmp_path, content):
    for first in range(1, len(content)):
        for second in range(first, len(content)):
            for window in (1, 3, 100):
                assert read_all(tmp_path, content, [first, second], window) == hadoop_splits(content, [first, second])


@given(st.binary(max_size=40), st.data())
def test_no_byte_is_lost_or_read_twice_at_any_borders(tmp_path_factory, content, data):
    borders = sorted(data.draw(st.sets(st.integers(1, max(1, len(content))), max_size=4))) if content else []
    shares = read_all(tmp_path_factory.mktemp("r"), content, borders, data.draw(st.integers(1, 50)))
    assert b"".join(shares) == content + (b"\n" if content and not content.endswith(b"\n") else b"")


@given(st.lists(st.binary(max_size=20)), st.integers(1, 30))
def test_blocks_are_whole_lines_with_nothing_lost(chunks, least):
    given_bytes = b"".join(chunks)
    found = list(lines.blocks(chunks, least))
    assert all(block.endswith(b"\n") for block in found)
    assert b"".join(found) == given_bytes + (b"" if given_bytes[-1:] in (b"", b"\n") else b"\n")


@given(st.lists(st.binary(max_size=9)))
def test_only_a_missing_last_newline_is_added(chunks):
    given_bytes = b"".join(chunks)
    expected = given_bytes if not given_bytes or given_bytes.endswith(b"\n") else given_bytes + b"\n"
    assert b"".join(lines.with_final_newline(chunks)) == expected
