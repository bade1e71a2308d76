import os
from pathlib import Path

import pytest

from boathouse_task import command, counters, processes
from boathouse_task.command import StderrPump
from boathouse_task.counters import CounterSet


def pumped(data: bytes) -> tuple[CounterSet, bytes, str]:
    """What becomes of a command's standard error: counters, what is passed on, the tail."""
    said_read, said_write = os.pipe()
    passed_read, passed_write = os.pipe()
    kept = CounterSet()
    with os.fdopen(said_read, "rb", buffering=0) as stream, os.fdopen(said_write, "wb") as writer:
        pump = StderrPump(stream, count=kept.add_users, status=kept.set_status, passed_on=passed_write)
        reading = processes.background("pump", pump.run)
        writer.write(data)
        writer.close()
        reading.join()
    os.close(passed_write)
    with os.fdopen(passed_read, "rb") as passed:
        return kept, passed.read(), pump.tail


def test_a_counter_line_adds_to_its_counter_and_is_not_passed_on():
    kept, passed, _ = pumped(b"reporter:counter:Words,long ones,2\nhello\nreporter:counter:Words,long ones,3\n")
    assert kept.values() == {"Words": {"long ones": 5}}
    assert passed == b"hello\n"


def test_a_counters_amount_may_be_negative():
    kept, _, _ = pumped(b"reporter:counter:g,n,-4\n")
    assert kept.values() == {"g": {"n": -4}}


def test_a_counters_name_has_no_comma():
    kept, passed, _ = pumped(b"reporter:counter:g,a,b,-4\n")
    assert kept.values() == {}
    assert b"with no other comma" in passed


def test_a_status_line_sets_the_status():
    kept, _, _ = pumped(b"reporter:status:at: page 3\n")
    assert kept.status == "at: page 3"


def test_lines_that_only_resemble_reports_are_passed_on():
    text = b"reporter:other\n reporter:status:x\n"
    kept, passed, _ = pumped(text)
    assert passed == text
    assert kept.values() == {}


def test_a_last_line_without_newline_is_understood():
    kept, _, _ = pumped(b"reporter:counter:g,n,1")
    assert kept.get("n", "g") == 1


def test_a_flood_keeps_only_its_tail():
    _, passed, tail = pumped(b"flood" * 5000 + b"\nthe end\n")
    assert len(passed) == 25000 + len(b"\nthe end\n")
    assert len(tail) <= command.TAIL_BYTES
    assert tail.endswith("the end")


def test_bytes_that_are_no_text_do_not_matter():
    _, passed, tail = pumped(b"\xff\x00\n")
    assert passed == b"\xff\x00\n"
    assert "�" in tail


def test_counters_beyond_the_limit_are_counted_as_dropped():
    kept, _, _ = pumped(b"".join(b"reporter:counter:g,n%d,1\n" % number for number in range(130)))
    assert len(kept.values()["g"]) == counters.MAX_COUNTERS
    assert kept.get(counters.DROPPED, counters.BOATHOUSE) == 10


NOT_AMOUNTS = [
    "99999999999999999999",
    "9223372036854775808",
    "--5",
    "9" * 5000,
    "²",
    "5\u00a0",
    "many",
    "-",
    "1.5",
    "0x10",
    "+-1",
]


@pytest.mark.parametrize("amount", NOT_AMOUNTS, ids=lambda amount: amount[:20])
def test_an_amount_that_is_no_integer_of_64_bits_is_ignored_with_a_warning_and_reading_continues(amount):
    kept, passed, _ = pumped(f"reporter:counter:g,n,{amount}\nreporter:counter:g,n,2\nhello\n".encode())
    warning, line, *rest = passed.decode().splitlines()
    assert kept.values() == {"g": {"n": 2}}
    assert "not a 64-bit integer" in warning
    assert (line, rest) == (f"reporter:counter:g,n,{amount}", ["hello"])


@pytest.mark.parametrize(
    ("amount", "value"),
    [("+7", 7), ("-0", 0), ("000000000000000000000000012", 12), ("-9223372036854775808", -(2**63))],
)
def test_an_amount_is_what_java_parses_as_a_long(amount, value):
    kept, _, _ = pumped(f"reporter:counter:g,n,{amount}\n".encode())
    assert kept.values() == {"g": {"n": value}}


@pytest.mark.parametrize("line", ["status", "counter", "status :x", "Status:x"])
def test_a_line_without_the_words_of_a_report_is_passed_on_without_a_warning(line):
    kept, passed, _ = pumped(f"reporter:status:before\nreporter:{line}\n".encode())
    assert (kept.status, kept.values()) == ("before", {})
    assert passed == f"reporter:{line}\n".encode()


def test_a_status_loses_the_spaces_and_control_characters_at_its_ends_only():
    kept, _, _ = pumped("reporter:status:\x01 \u00a0page  3\t \r\n".encode())
    assert kept.status == "\u00a0page  3"


def test_a_counter_line_without_an_amount_is_passed_on_with_a_warning():
    _, passed, _ = pumped(b"reporter:counter:g,x\n")
    assert b"GROUP,COUNTER,AMOUNT" in passed
    assert passed.endswith(b"reporter:counter:g,x\n")


def test_warnings_are_bounded():
    _, passed, _ = pumped(b"reporter:counter:g,n,x\n" * 1000)
    assert passed.count(b"is not counted") == command.MAX_WARNINGS
    assert passed.count(b"reporter:counter:g,n,x\n") == 1000


def test_sums_stop_at_64_bits():
    kept, _, _ = pumped(b"reporter:counter:g,n,9223372036854775807\n" * 3)
    assert kept.values() == {"g": {"n": 2**63 - 1}}
    assert counters.total([kept.values(), kept.values()]) == {"g": {"n": 2**63 - 1}}


def test_the_rest_of_a_line_that_is_too_long_is_no_report():
    kept = CounterSet()
    passed_read, passed_write = os.pipe()
    with Path(os.devnull).open("rb", buffering=0) as stream:
        pump = StderrPump(stream, count=kept.add_users, status=kept.set_status, passed_on=passed_write)
        assert pump._take(b"x" * 20_000) == b""
        pump._take(b"reporter:counter:g,n,1\nreporter:counter:g,n,2\n")
    os.close(passed_write)
    with os.fdopen(passed_read, "rb") as passed:
        assert passed.read() == b"x" * 20_000 + b"reporter:counter:g,n,1\n"
    assert kept.values() == {"g": {"n": 2}}
