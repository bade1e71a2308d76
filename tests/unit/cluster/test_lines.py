from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from boathouse.cluster import lines


@given(text=st.lists(st.binary().filter(lambda line: b"\n" not in line)), cuts=st.lists(st.integers(0, 200)))
def test_lines_come_out_whole_however_the_stream_is_cut(text, cuts):
    stream = b"".join(line + b"\n" for line in text)
    splitter = lines.LineSplitter()
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    found = [line for begin, end in itertools.pairwise(edges) for line in splitter.feed(stream[begin:end])]
    assert found == text
    assert not splitter.has_rest


def test_a_line_that_did_not_end_is_kept_back():
    splitter = lines.LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.has_rest
    assert splitter.feed(b"o\n") == [b"two"]


def test_a_line_of_megabytes_is_no_trouble():
    splitter = lines.LineSplitter()
    for _ in range(64):
        assert splitter.feed(b"x" * 65536) == []
    assert splitter.feed(b"\n") == [b"x" * 4194304]
