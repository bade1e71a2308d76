import os

from boathouse_task import counters, stderr
from boathouse_task.counters import CounterSet
from boathouse_task.stderr import StderrPump


def pumped(data: bytes) -> tuple[CounterSet, bytes, str]:
    """What becomes of a command's standard error: counters, what is passed on, the tail."""
    said_read, said_write = os.pipe()
    passed_read, passed_write = os.pipe()
    kept = CounterSet()
    with os.fdopen(said_read, "rb", buffering=0) as stream, os.fdopen(said_write, "wb") as writer:
        pump = StderrPump(stream, count=kept.add_users, status=kept.set_status, passed_on=passed_write)
        pump.start()
        writer.write(data)
        writer.close()
        pump.join()
    os.close(passed_write)
    with os.fdopen(passed_read, "rb") as passed:
        return kept, passed.read(), pump.tail


def test_a_counter_line_adds_to_its_counter_and_is_not_passed_on():
    kept, passed, _ = pumped(b"reporter:counter:Words,long ones,2\nhello\nreporter:counter:Words,long ones,3\n")
    assert kept.values() == {"Words": {"long ones": 5}}
    assert passed == b"hello\n"


def test_a_counters_name_may_hold_commas_and_its_amount_be_negative():
    kept, _, _ = pumped(b"reporter:counter:g,a,b,-4\n")
    assert kept.values() == {"g": {"a,b": -4}}


def test_a_status_line_sets_the_status():
    kept, _, _ = pumped(b"reporter:status:at: page 3\n")
    assert kept.status == "at: page 3"


def test_lines_that_only_resemble_reports_are_passed_on():
    text = b"reporter:counter:g,x\nreporter:counter:g,n,many\nreporter:other\n reporter:status:x\n"
    kept, passed, _ = pumped(text)
    assert passed == text
    assert kept.values() == {}


def test_a_last_line_without_newline_is_understood():
    kept, _, _ = pumped(b"reporter:counter:g,n,1")
    assert kept.get("n", "g") == 1


def test_a_flood_keeps_only_its_tail():
    _, passed, tail = pumped(b"flood" * 5000 + b"\nthe end\n")
    assert len(passed) == 25000 + len(b"\nthe end\n")
    assert len(tail) <= stderr.TAIL_BYTES
    assert tail.endswith("the end")


def test_bytes_that_are_no_text_do_not_matter():
    _, passed, tail = pumped(b"\xff\x00\n")
    assert passed == b"\xff\x00\n"
    assert "�" in tail


def test_counters_beyond_the_limit_are_counted_as_dropped():
    kept, _, _ = pumped(b"".join(b"reporter:counter:g,n%d,1\n" % number for number in range(130)))
    assert len(kept.values()["g"]) == counters.MAX_COUNTERS
    assert kept.get(counters.DROPPED, counters.BOATHOUSE) == 10
