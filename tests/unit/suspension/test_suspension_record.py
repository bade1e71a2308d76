"""The record of a suspension, as an annotation carries it."""

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from boathouse.suspension import stages as suspension_record

RECORD = suspension_record.SuspensionRecord(
    cpu_request_milli=500,
    cpu_limit_milli=1000,
    since_s=1_800_000_000.25,
    until_s=1_800_000_030.0,
    reason="WaitingForMaps",
    by="ikayak",
    order="7-12",
)


def with_changes(**changes):
    return msgspec.structs.replace(RECORD, **changes).text()


def test_a_record_is_read_as_it_was_written():
    assert suspension_record.parse(RECORD.text()) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "no JSON",
        "\udc80",
        with_changes(reason="x" * 512),
        with_changes(cpu_request_milli=0),
        with_changes(cpu_request_milli=10**9 + 1),
        with_changes(cpu_limit_milli=-1),
        pytest.param(with_changes(cpu_request_milli=1, cpu_limit_milli=10), id="CPU of a suspended task"),
        with_changes(until_s=1.0),
        with_changes(since_s=-1.0),
        with_changes(until_s=1e300),
        RECORD.text().replace("500", '"500"'),
    ],
)
def test_what_the_operator_did_not_write_is_no_record(text):
    assert suspension_record.parse(text) is None


@hypothesis.given(st.text())
def test_no_text_raises(text):
    assert suspension_record.parse(text) is None
