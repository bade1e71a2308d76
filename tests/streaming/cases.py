"""Jobs that `jobs` does not make up by chance, which write and count what Hadoop Streaming writes and counts."""

import itertools
import shlex
from collections.abc import Iterator
from typing import Final

from tests.streaming.differences import job
from tests.streaming.jobs import Job

_CAT: Final = "cat"
_TALKING: Final = "echo reporter:counter:g,n,1 >&2; echo reporter:status:here >&2; echo out; cat"

COUNTER_LINES: Final = {
    "plain": "g,n,5",
    "a negative amount": "g,n,-5",
    "a plus sign": "g,n,+5",
    "leading zeros": "g,n,00000000000000000000000000000005",
    "the most": "g,n,9223372036854775807",
    "the least": "g,n,-9223372036854775808",
    "too much": "g,n,9223372036854775808",
    "too little": "g,n,-9223372036854775809",
    "spaces around the line": "  g,n,5  ",
    "spaces around the words": "a, b , 5",
    "a space before the last comma": "a, b ,5",
    "a space after the amount and a comma": "g,n,5 ,",
    "control characters around the line": "\x01\t g,n,5\x1f",
    "a no-break space before the line": "\u00a0g,n,5",
    "a no-break space after the line": "g,n,5\u00a0",
    "a comma too many": "a,b,c,5",
    "a last comma": "a,b,5,",
    "last commas": "a,b,5,,,",
    "no name": "a,,1",
    "no group": ",b,1",
    "neither": ",,1",
    "no amount": "a,b,",
    "no amount and no comma": "a,b",
    "an empty amount in the middle": "a,,,1",
    "Arabic digits": "g,n,\u0663\u0660",
    "Arabic zeros first": "g,n,\u0660\u0660\u0667",
    "Devanagari and ASCII digits": "g,n,1\u0968",
    "fullwidth digits": "g,n,\uff15",
    "mathematical digits": "g,n,\U0001d7d5",
    "a superscript": "g,n,\u00b2",
    "a Roman number": "g,n,\u2167",
    "a fullwidth sign": "g,n,\uff0b5",
    "a sign alone": "g,n,-",
    "two signs": "g,n,--5",
    "a fraction": "g,n,1.5",
    "a word": "g,n,many",
    "underscores": "g,n,1_000",
    "hexadecimal": "g,n,0x10",
    "a long suffix": "g,n,5L",
    "a colon": "a:b,c:d,5",
    "bytes that are no text": b"a\xff,b\xed\xa0\x80c,5",
}
"""What follows `reporter:counter:`, and counts or does not."""
OTHER_LINES: Final = {
    "a space before the counter line": " reporter:counter:g,n,5",
    "another kind": "reporter:counters:g,n,5",
    "a space within": "reporter: counter:g,n,5",
    "a capital": "Reporter:counter:g,n,5",
    "no last line end": "x\nreporter:counter:g,n,5",
    "CR ends a line": "x\rreporter:counter:g,n,5\rreporter:counter:g,n,6",
}
_BYTES: Final = (
    b"\x20\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xf7\xf8\xff"
)
"""Bytes at the borders of what may follow what in UTF-8."""


def every() -> dict[str, Job]:
    """Return the jobs by name."""
    return {**dict(_counters()), **dict(_partitions()), **dict(_empty_files()), **dict(_empty_reduces())}


def _counters() -> Iterator[tuple[str, Job]]:
    """Yield jobs that write a line to their standard error, once in a map."""
    lines = {name: b"reporter:counter:" + _bytes(line) + b"\n" for name, line in COUNTER_LINES.items()}
    for name, line in (lines | {name: _bytes(line) for name, line in OTHER_LINES.items()}).items():
        octal = "".join(f"\\{byte:03o}" for byte in line)
        yield f"counter line: {name}", job({"file.txt": b"x\n"}, mapper=f"printf {shlex.quote(octal)} >&2; cat")


def _bytes(line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode()


def _partitions() -> Iterator[tuple[str, Job]]:
    """Yield jobs with keys of all kinds before a KeyFieldBasedPartitioner."""
    odd = [bytes(byte_values) for byte_values in itertools.product(_BYTES, repeat=2)]
    longer = [
        start + bytes(byte_values)
        for start in (b"\xe0", b"\xe1", b"\xed", b"\xef", b"\xf0", b"\xf1", b"\xf4", b"\xf5")
        for byte_values in itertools.product(b"\x41\x80\x8f\x90\x9f\xa0\xbf", repeat=3)
    ]
    keys = [*odd, *longer, "\u00e4.\u20ac.\U0001f600".encode(), b""]
    for options in (None, "-k1,1", "-k1.2,1.3", "-k2", "-n", "-r", "-nr -k2,2"):
        named = {} if options is None else {"options": options}
        yield (
            f"keys that are no text: {options}",
            _partitioned(b"".join(b"%b.%b\tv\n" % (key, key[::-1]) for key in keys), ".", named),
        )
    fields = ["", "a", "b", "ab", ":", "a:"]
    rows = "".join("::".join(row) + "\tv\n" for row in itertools.product(fields, repeat=3)).encode()
    for options in ("-k1,1", "-k2,2", "-k3", "-k2.2,2.3", "-k2,3.1", "-k4"):
        yield f"a separator of two characters: {options}", _partitioned(rows, "::", {"options": options})
    sorting = "".join(f"{first}::{second}::x\tv\n" for first in ("b", "ab", "a", "") for second in ("1", "10", "9", ""))
    for options in ("-k1,1", "-k2,2nr", "-k2.2,3"):
        yield (
            f"a comparator with a separator of two characters: {options}",
            job(
                {"file.txt": sorting.encode()},
                mapper=_CAT,
                reducer=_CAT,
                numMapOutputKeyFields=1,
                mapOutputKeyFieldSeparator="::",
                comparator={"options": options},
            ),
        )
    yield (
        "a separator that is no ASCII",
        _partitioned(rows.replace(b"::", "\u20ac".encode()), "\u20ac", {"options": "-k2,2"}),
    )


def _partitioned(rows: bytes, separator: str, options: dict[str, str]) -> Job:
    return job(
        {"file.txt": rows},
        mapper=_CAT,
        reducer=_CAT,
        numReduceTasks=5,
        mapOutputKeyFieldSeparator=separator,
        partitioner={"type": "KeyFieldBasedPartitioner", **options},
    )


def _empty_files() -> Iterator[tuple[str, Job]]:
    """Yield jobs with a file of no bytes whose name says that it is compressed."""
    for suffix in ("gz", "deflate", "bz2", "snappy"):
        empty = {f"empty.{suffix}": b""}
        yield f"an empty .{suffix}", job(empty, mapper=_CAT)
        yield f"an empty .{suffix} beside a file", job({**empty, "file.txt": b"a\n"}, mapper=_CAT)
        yield f"an empty .{suffix} of keys and values", job(empty, mapper=_CAT, inputFormat="KeyValueTextInputFormat")


def _empty_reduces() -> Iterator[tuple[str, Job]]:
    """Yield jobs with reduces that get no record."""
    for name, rows, more in (
        ("no reduce has input", b"", {}),
        ("a reduce has none", b"a\t1\n", {"numReduceTasks": 3}),
        ("no reduce has input, and all fail", b"", {"script": f"{_TALKING}; exit 3"}),
    ):
        spec = {"reducer": more.pop("script", _TALKING), **more}
        yield name, job({"file.txt": rows}, mapper=_CAT, **spec)
    yield "no map has input", job({"file.txt": b""}, mapper=_TALKING, reducer=_CAT)
    yield "a combiner has no input", job({"file.txt": b""}, mapper=_CAT, combiner=_TALKING, reducer=_CAT)
