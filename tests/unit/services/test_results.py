"""Results of tasks are hostile input: nothing of them reaches a status or a metric unchecked."""

import msgspec
import pytest

from boathouse.services.mrjob import results
from boathouse_task import contract

HUGE = 10**300


def result_of(**fields):
    return results.read(msgspec.json.encode({"outcome": "failed", **fields}).decode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        '{"outcome": "failed", "x": ' + "[" * 4000 + "]" * 4000 + "}",
        '{"outcome": "failed", "splits": ' + "9" * 5000 + "}",
        '{"outcome": "failed", "message": "' + "x" * 20_000 + '"}',
        '{"outcome": "hacked"}',
        '{"outcome": 7}',
    ],
    ids=["empty", "no JSON", "nested", "5000 digits", "20 kB", "unknown outcome", "wrong type"],
)
def test_a_text_that_is_no_result_is_none(text):
    assert results.read(text) is None


def test_reasons_come_from_the_runtimes_closed_set():
    assert result_of(reason="OutOfDisk").reason == "OutOfDisk"
    assert result_of(reason="").reason == ""
    assert result_of(reason='x"} 1\nevil_metric 7').reason == "TaskFailed"


def test_numbers_have_64_bits_and_are_not_negative():
    found = result_of(winner_attempt=HUGE, splits=-1, bytes_total=2**63, exit_code=HUGE)
    assert (found.winner_attempt, found.splits, found.bytes_total, found.exit_code) == (0, 0, 0, None)
    assert (result_of(bytes_total=2**63 - 1).bytes_total, result_of(exit_code=-9).exit_code) == (2**63 - 1, -9)


def test_a_digest_is_64_digits_or_none():
    assert result_of(digest="a" * 64).digest == "a" * 64
    assert [result_of(digest=text).digest for text in ("A" * 64, "a" * 65, "../x")] == ["", "", ""]


def test_texts_are_cut_and_have_no_control_characters():
    found = result_of(message="\x1b[2J\u202e" + "x" * 5000, stderr_tail="y" * 3000 + "\nend\x00")
    assert len(found.message) == results.MAX_MESSAGE
    assert "\x1b" not in found.message
    assert "\u202e" not in found.message
    assert found.stderr_tail.endswith("\nend ")
    assert len(found.stderr_tail) == results.MAX_TAIL


def test_counters_beyond_64_bits_are_dropped_and_their_names_are_cut():
    found = result_of(counters={"g" * 500: {"n" * 500: 1, "m": HUGE, "o": -(2**63)}})
    assert found.counters == {"g" * 63 + "…": {"n" * 63 + "…": 1, "o": -(2**63)}}


def test_timings_are_few_and_finite():
    found = result_of(timings=[["read", -(10**20), 10**20]] * 100)
    assert found.timings == [contract.Timing("read", 0, 2**53)] * results.MAX_TIMINGS


def test_a_report_of_a_running_task_has_its_numbers_in_bounds():
    wild = contract.TaskReport(
        phase="x" * 999, progress=1e300, records_in=HUGE, bytes_out=-5, counters={"g": {"n": HUGE}}
    )
    found = results.report(wild)
    assert (len(found.phase), found.progress, found.records_in, found.bytes_out) == (results.MAX_NAME, 1.0, 0, 0)
    assert found.counters == {"g": {}}
