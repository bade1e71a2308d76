"""Order keys like Hadoop's KeyFieldBasedComparator.

Lines are sorted and merged as bytes, so each line starts with a sort key: bytes that compare like the comparator, and a
TAB, which no sort key contains. `strip` removes it before a command reads the line. Lines that compare equal are
ordered by their own bytes, so equal keys stay adjacent.

A part of a sort key ends with a byte that is less than all others (in reverse: greater), so that a shorter field comes
before (after) a longer one with the same prefix:
* bytes: hex digits, in reverse of the complement;
* a number: its sign, then the count of its digits before the point, these digits, those after the point; each in
  nines' complement if the order is reversed;
* a field that the key lacks comes before (in reverse: after) all others.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from boathouse_task import lines
from boathouse_task.contract import Partitioner, Reason
from boathouse_task.errors import TaskError
from boathouse_task.partition import ORDER_OPTIONS, KeySpec, key_spec, span

_CACHE_KEYS = 50_000
_LEAST, _END, _REVERSE_END, _GREATEST = b" ", b"!", b"~", b"\x7f"
_COMPLEMENT = bytes(255 - byte for byte in range(256))
_NINES = bytes.maketrans(b"0123456789", b"9876543210")
_NUMBER = re.compile(rb"(-?)0*([0-9]*)(?:\.([0-9]*))?")
_COUNT_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    where: KeySpec
    numeric: bool
    reverse: bool


class Ordering:
    """Computes sort keys.

    Args:
        partitioner: has the comparator's options and the separator of fields.

    Raises:
        TaskError: InvalidSpec if the options are invalid.
    """

    def __init__(self, partitioner: Partitioner) -> None:
        self._fields = parse(partitioner.comparator_options or "")
        self._separator = partitioner.key_field_separator.encode()
        self._known: dict[bytes, bytes] = {}

    def sort_key(self, key: bytes) -> bytes:
        """Return the sort key of the lines of `key`, with its TAB."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _CACHE_KEYS:
                self._known.clear()
            found = self._known[key] = b"".join(self._part(key, field) for field in self._fields) + b"\t"
        return found

    def _part(self, key: bytes, field: _Field) -> bytes:
        place = span(key, field.where, self._separator)
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
    found = _NUMBER.match(content)
    assert found is not None
    minus, whole, fraction = found[1], found[2], (found[3] or b"").rstrip(b"0")
    if not whole and not fraction:
        return b"1" + _END
    digits = b"%0*d" % (_COUNT_DIGITS, len(whole)) + whole + fraction
    if bool(minus) != reverse:
        return b"0" + digits.translate(_NINES) + _REVERSE_END
    return b"2" + digits + _END


def parse(options: str) -> tuple[_Field, ...]:
    """Parse mapreduce.partition.keycomparator.options, `-k2,2nr -k1,1`; -n and -r alone apply to fields without flags.

    Raises:
        TaskError: InvalidSpec.
    """
    found: list[_Field] = []
    everywhere = ""
    words = options.split()
    while words:
        word = words.pop(0)
        if word.startswith("-k"):
            text = word[2:] or (words.pop(0) if words else "")
            try:
                where = key_spec(text)
            except ValueError as error:
                raise _invalid(str(error)) from None
            found.append(_Field(where=where, numeric="n" in text, reverse="r" in text))
        elif word in ORDER_OPTIONS:
            everywhere += word[1:]
        else:
            raise _invalid(f"the option {word!r} is not of the form -k2,2nr")
    found = found or [_Field(where=KeySpec(begin_field=1), numeric=False, reverse=False)]
    numeric, reverse = "n" in everywhere, "r" in everywhere
    return tuple(
        each if each.numeric or each.reverse else _Field(where=each.where, numeric=numeric, reverse=reverse)
        for each in found
    )


def _invalid(problem: str) -> TaskError:
    return TaskError(Reason.INVALID_SPEC, f"spec.comparator: {problem}", user_error=True)


def strip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines without their sort keys."""
    for block in lines.blocks(chunks):
        rows = [line.partition(b"\t")[2] for line in block[:-1].split(b"\n")]
        rows.append(b"")
        yield b"\n".join(rows)
