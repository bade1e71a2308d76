"""What Java makes of bytes and texts; `test_hadoop_streaming_cases` compares it with real Hadoop."""

import pytest
from hypothesis import given, strategies as st

from boathouse_task import lines


@pytest.mark.parametrize(
    ("data", "replaced"),
    [
        pytest.param(b"\xff", 1, id="no start"),
        pytest.param(b"\xe2\x82", 1, id="cut short"),
        pytest.param(b"\xe2\x82A", 1, id="cut short before a letter"),
        pytest.param(b"\xe0\x80\x80", 3, id="too long a form"),
        pytest.param(b"\xed\xa0\x80", 1, id="half of a surrogate pair"),
        pytest.param(b"\xed\xa0", 1, id="two bytes of a surrogate"),
        pytest.param(b"\xed\xa0\xed\xa0", 2, id="twice two bytes of a surrogate"),
        pytest.param(b"\xed\xa0\x80\xed\xb0\x80", 2, id="a surrogate pair"),
        pytest.param(b"\xf4\x90\x80\x80", 4, id="beyond Unicode"),
    ],
)
def test_what_is_no_utf8_is_replaced_as_often_as_in_java(data, replaced):
    assert lines.java_decoded(b"a" + data).removesuffix("A") == "a" + "\ufffd" * replaced


@given(st.text())
def test_text_stays_as_it_is(text):
    data = text.encode()
    assert (lines.java_decoded(data), lines.java_decoded(data).encode()) == (text, data)


@given(st.integers(-(2**70), 2**70))
def test_integers_of_64_bits_are_parsed_and_no_others(number):
    assert lines.java_long(str(number)) == (number if -(2**63) <= number < 2**63 else None)


@pytest.mark.parametrize("text", ["0" * 20_000 + "7", "\u0660" * 20_000 + "\u0667"])
def test_any_number_of_zeros_may_come_first(text):
    assert lines.java_long(text) == 7


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a,b", ["a", "b"]), ("a,,b,,", ["a", "", "b"]), (",a", ["", "a"]), (",,", []), ("a", ["a"])],
)
def test_empty_parts_at_the_end_of_a_text_are_no_parts(text, parts):
    assert lines.java_split(text, ",") == parts
