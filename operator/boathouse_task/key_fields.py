"""Keys of lines and their fields: which bytes are the key, the order of keys, and the reduce of each.

A key is a line's first fields; a line without a further separator is a key with an empty value. Hadoop writes such a
line with a separator at its end, to files too.

**Reduces.** HashPartitioner hashes the key's bytes as org.apache.hadoop.io.Text does (WritableComparator.hashBytes:
start with 1, then hash = 31 * hash + signed byte, 32 bits), and takes (hash & Integer.MAX_VALUE) % reduces.
KeyFieldBasedPartitioner does the same, starting with 0, with the bytes of the fields that -k options name, after it has
read the key as a text: what is no UTF-8 is U+FFFD there. Without options it hashes the key as java.lang.String.

Hashing is done for many keys at once: byte j of all keys is one column, and a column is one Python integer with a lane
of 64 bits for each key, so that multiplying, adding and masking run in C (five times as fast as key by key).

**Order**, like Hadoop's KeyFieldBasedComparator. Lines are sorted and merged as bytes, so each line starts with a sort
key: bytes that compare like the comparator, and a TAB, which no sort key contains. `strip` removes it before a command
reads the line. Lines that compare equal are ordered by their own bytes, so equal keys stay adjacent.

A part of a sort key ends with a byte that is less than all others (in reverse: greater), so that a shorter field comes
before (after) a longer one with the same prefix:
* bytes: hex digits, in reverse of the complement;
* a number: its sign, then the count of its digits before the point, these digits, those after the point; each in
  nines' complement if the order is reversed;
* a field that the key lacks comes before (in reverse: after) all others.
"""

import functools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import contains

from boathouse_task import lines
from boathouse_task.contract import Partitioner, Reason
from boathouse_task.errors import TaskError

TAB = b"\t"


def key(line: bytes, separator: bytes, fields: int) -> bytes:
    """Return a line's first `fields` fields (stream.num.map.output.key.fields); the whole line if it has no more."""
    if fields == 1:
        return line.partition(separator)[0]
    parts = line.split(separator, fields)
    return separator.join(parts[:fields]) if len(parts) > fields else line


def combined_key(line: bytes, fields: int) -> bytes:
    """Return the key of a combiner's line. A key that lacks fields has no value: only a TAB may follow it."""
    parts = line.split(TAB, fields)
    return TAB.join(parts[:fields]) if len(parts) > fields else line.removesuffix(TAB)


def separated(chunks: Iterable[bytes], separator: bytes, fields: int, to: bytes) -> Iterator[bytes]:
    """Yield lines with `to` between key and value, also after a key without a value.

    The lines may be cut at any position. `separator` separates their fields so far; the first `fields` are the key.
    """

    def change(rows: list[bytes]) -> list[bytes] | None:
        if fields > 1:
            return keyed(rows, separator, fields, to)[1]
        if not all(map(contains, rows, repeat(separator))):
            return [row.replace(separator, to, 1) if separator in row else row + to for row in rows]
        return None if separator == to else [row.replace(separator, to, 1) for row in rows]

    return lines.changed(chunks, change)


def keyed(rows: list[bytes], separator: bytes, fields: int, to: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of lines, and the lines with `to` between key and value."""
    keys, width = [key(row, separator, fields) for row in rows], len(separator)
    pairs = zip(keys, rows, strict=True)
    return keys, [b"%b%b%b" % (row_key, to, row[len(row_key) + width :]) for row_key, row in pairs]


HASH = "HashPartitioner"
KEY_FIELD = "KeyFieldBasedPartitioner"
_PARTITIONER = "spec.partitioner"

ORDER_OPTIONS = ("-n", "-r", "-nr")
"""Options without -k that Hadoop knows; it ignores others, such as -rn."""
_MAX_VALUE = 0x7FFFFFFF
_LANE_BYTES = 8
_BATCH = 4096
_LONG_KEY_BYTES = 256
"""Longer keys are hashed individually, because one of them would widen all columns of its batch."""
_SIGN = bytes(1 if byte > 0x7F else 0 for byte in range(256))  # noqa: PLR2004 - the lowest negative byte
_SIGN_CORRECTION = (1 << 32) - 256
_DIGITS = bytes(range(0x21, 0x7F))
"""Digits of the partition prefix: printable, and ascending as sort compares them."""


def prefix_width(reduces: int) -> int:
    """Return the number of digits of a partition prefix; 0 for a single partition."""
    width, room = 0, 1
    while room < reduces:
        width, room = width + 1, room * len(_DIGITS)
    return width


def prefix(partition: int, width: int) -> bytes:
    """Return the partition as digits of fixed width, which sort numerically."""
    digits = bytearray()
    for _ in range(width):
        partition, digit = divmod(partition, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))


def chooser(partitioner: Partitioner, reduces: int) -> Callable[[Sequence[bytes]], list[int]]:
    """Return a function that assigns keys to reduces. Raises TaskError: InvalidSpec for invalid options."""
    hashes = _hash_function(partitioner)

    def choose(keys: Sequence[bytes]) -> list[int]:
        batches = (keys[start : start + _BATCH] for start in range(0, len(keys), _BATCH))
        return [(value & _MAX_VALUE) % reduces for batch in batches for value in hashes(batch)]

    return choose


_HashFunction = Callable[[Sequence[bytes]], Sequence[int]]


def _hash_function(partitioner: Partitioner) -> _HashFunction:
    if partitioner.num_key_fields < 1:
        raise _invalid(_PARTITIONER, f"num_key_fields is {partitioner.num_key_fields}; it must be 1 or more")
    match partitioner.type:
        case "HashPartitioner":
            return functools.partial(java_hashes, seed=1)
        case "KeyFieldBasedPartitioner":
            specs = parse(partitioner.options, _PARTITIONER) if partitioner.options else ()
            separator = partitioner.key_field_separator.encode()
            if not separator:
                raise _invalid(_PARTITIONER, "the key field separator is empty")
            hash_key = functools.partial(_key_field_hash, specs=specs, separator=separator) if specs else _string_hash
            return lambda keys: list(map(hash_key, keys))
        case unknown:
            raise _invalid(_PARTITIONER, f"{unknown!r} is neither {HASH} nor {KEY_FIELD}")


def _invalid(field: str, problem: str) -> TaskError:
    return TaskError(Reason.INVALID_SPEC, f"{field}: {problem}")


def java_hashes(keys: Sequence[bytes], *, seed: int) -> Sequence[int]:
    """Return 31-polynomial hashes of the keys' signed bytes, as unsigned 32-bit values, in the order of the keys."""
    if not keys:
        return []
    widest = max(map(len, keys))
    if widest > _LONG_KEY_BYTES:
        return [java_hash(key, seed) for key in keys]
    lanes = len(keys) * _LANE_BYTES
    mask = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * len(keys), "little")
    # Leading NULs add nothing to a sum that starts with 0; the seed's part depends only on the length.
    padded = b"".join(map(bytes.rjust, keys, repeat(widest), repeat(b"\0")))
    total = _columns(padded, widest, lanes, mask)
    powers = [seed * pow(31, length, 1 << 32) for length in range(widest + 1)]
    sums = memoryview(total.to_bytes(lanes, "little")).cast("Q")
    return [
        value + power & 0xFFFFFFFF for value, power in zip(sums, map(powers.__getitem__, map(len, keys)), strict=True)
    ]


def _columns(padded: bytes, width: int, lanes: int, mask: int) -> int:
    """Horner's rule over the columns; each lane stays below 2**32 between steps, so that none runs into the next."""
    column = bytearray(lanes)
    total = 0
    signs = b"" if padded.isascii() else padded.translate(_SIGN)
    for place in range(width):
        column[0::_LANE_BYTES] = padded[place::width]
        total = total * 31 + int.from_bytes(column, "little")
        if signs:
            column[0::_LANE_BYTES] = signs[place::width]
            total += int.from_bytes(column, "little") * _SIGN_CORRECTION
        total &= mask
    return total


def java_hash(key: bytes, seed: int) -> int:
    """Return the hash of one key, as `java_hashes` does for many."""
    value = seed
    for byte in key:
        value = (31 * value + byte - (byte > 0x7F) * 256) & 0xFFFFFFFF  # noqa: PLR2004 - the lowest negative byte
    return value


def _string_hash(key: bytes) -> int:
    """java.lang.String.hashCode of a key: over UTF-16 code units."""
    value = 0
    for (unit,) in struct.iter_unpack(">H", lines.java_decoded(key).encode("utf-16-be")):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """One -k option: -kBEGIN_FIELD[.BEGIN_CHAR][,END_FIELD[.END_CHAR]][n][r], counted from 1; 0 means the end."""

    begin_field: int
    begin_char: int = 1
    end_field: int = 0
    end_char: int = 0
    numeric: bool = False
    reverse: bool = False


_KEY_SPEC = re.compile(r"(\d+)(?:\.(\d*))?[nr]*(?:,(?:(\d+)(?:\.(\d*))?)?[nr]*)?")


def parse(options: str, field: str) -> tuple[KeySpec, ...]:
    """Return the -k options of mapreduce.partition.keypartitioner.options or keycomparator.options: `-k2,2nr -k1,1`.

    -n and -r alone apply to -k options without flags; a partitioner ignores both. Options without any -k name the whole
    key. Raises TaskError: InvalidSpec, with the field of the spec.
    """
    specs, everywhere = [], ""
    words = iter(options.split())
    for word in words:
        if word.startswith("-k"):
            try:
                specs.append(_key_spec(word[2:] or next(words, "")))
            except ValueError as error:
                raise _invalid(field, str(error)) from None
        elif word in ORDER_OPTIONS:
            everywhere += word[1:]
        else:
            raise _invalid(field, f"the option {word!r} is not of the form -k1,2 or -k2,2nr")
    numeric, reverse = "n" in everywhere, "r" in everywhere
    return tuple(
        spec if spec.numeric or spec.reverse else replace(spec, numeric=numeric, reverse=reverse)
        for spec in specs or [KeySpec(begin_field=1)]
    )


def _key_spec(text: str) -> KeySpec:
    """Return the option of a text after -k. Raises ValueError if it has another form."""
    match = _KEY_SPEC.fullmatch(text)
    if match is None:
        raise ValueError(f"the option -k{text} is not of the form -k1,2 or -k1.3,2.4")
    numbers = [int(number or default) for number, default in zip(match.groups(), (0, 1, 0, 0), strict=True)]
    if min(numbers[:2]) < 1:
        raise ValueError(f"the option -k{text} counts fields and characters from 1")
    begin_field, begin_char, end_field, end_char = numbers
    return KeySpec(
        begin_field=begin_field,
        begin_char=begin_char,
        end_field=end_field,
        end_char=end_char,
        numeric="n" in text,
        reverse="r" in text,
    )


def _key_field_hash(key: bytes, specs: tuple[KeySpec, ...], separator: bytes) -> int:
    value, text = 0, lines.java_utf8(key)
    for spec in specs:
        place = span(text, spec, separator)
        if place is not None:
            value = java_hash(text[place[0] : place[1]], value)
    return value


def span(key: bytes, spec: KeySpec, separator: bytes) -> tuple[int, int] | None:
    """Return start and end of the bytes that a -k option selects in a key, as KeyFieldHelper does; None: none."""
    lengths = _field_lengths(key, separator)
    if spec.begin_field > len(lengths):
        return None
    start = _field_start(lengths, spec.begin_field, separator) + spec.begin_char - 1
    if start >= len(key):
        return None
    if spec.end_field == 0 or spec.end_field > len(lengths):
        return start, len(key)
    end = _field_start(lengths, spec.end_field, separator)
    end += spec.end_char or lengths[spec.end_field - 1]
    return start, max(start, min(end, len(key)))


def _field_lengths(key: bytes, separator: bytes) -> list[int]:
    """Return the lengths of a key's fields, as KeyFieldHelper's getWordLengths counts them.

    It looks for the next separator one byte after the start of the last, so each field after a longer one counts the
    rest of the separator too, and separators may overlap.
    """
    if len(separator) == 1:
        return [len(field) for field in key.split(separator)]
    lengths, start = [], 0
    while (place := key.find(separator, start)) >= 0:
        lengths.append(place - start)
        start = place + 1
    return [*lengths, len(key) - start]


def _field_start(lengths: list[int], field: int, separator: bytes) -> int:
    return sum(lengths[: field - 1]) + (field - 1) * len(separator)


_CACHE_KEYS = 50_000
_LEAST, _END, _REVERSE_END, _GREATEST = b" ", b"!", b"~", b"\x7f"
_COMPLEMENT = bytes(255 - byte for byte in range(256))
_NINES = bytes.maketrans(b"0123456789", b"9876543210")
_NUMBER = re.compile(rb"(-?)0*([0-9]*)(?:\.([0-9]*))?")
_COUNT_DIGITS = 10


class Ordering:
    """Computes sort keys by the partitioner's comparator options. Raises TaskError: InvalidSpec if they are invalid."""

    def __init__(self, partitioner: Partitioner) -> None:
        self._fields = parse(partitioner.comparator_options or "", "spec.comparator")
        self._separator = partitioner.key_field_separator.encode()
        self._known: dict[bytes, bytes] = {}

    def sort_key(self, key: bytes) -> bytes:
        """Return the sort key of the lines of `key`, with its TAB."""
        sort_key = self._known.get(key)
        if sort_key is None:
            if len(self._known) >= _CACHE_KEYS:
                self._known.clear()
            sort_key = self._known[key] = b"".join(self._part(key, field) for field in self._fields) + b"\t"
        return sort_key

    def _part(self, key: bytes, field: KeySpec) -> bytes:
        place = span(key, field, self._separator)
        if place is None:
            return _GREATEST if field.reverse else _LEAST
        content = key[place[0] : place[1]]
        if field.numeric:
            return _number(content, reverse=field.reverse)
        if field.reverse:
            return content.translate(_COMPLEMENT).hex().encode() + _REVERSE_END
        return content.hex().encode() + _END


def _number(content: bytes, *, reverse: bool) -> bytes:
    """Return the number at the start of `content`, or 0."""
    match = _NUMBER.match(content)
    assert match is not None
    minus, whole, fraction = match[1], match[2], (match[3] or b"").rstrip(b"0")
    if not whole and not fraction:
        return b"1" + _END
    digits = b"%0*d" % (_COUNT_DIGITS, len(whole)) + whole + fraction
    if bool(minus) != reverse:
        return b"0" + digits.translate(_NINES) + _REVERSE_END
    return b"2" + digits + _END


def strip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their sort keys."""
    return lines.changed(chunks, lambda rows: [row.partition(TAB)[2] for row in rows])
