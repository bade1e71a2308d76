"""Make mapper output sortable, and write it sorted: one data file, partition after partition, and its index.

Each line becomes KEY<TAB>VALUE after its partition's digits and, if a comparator is set, its sort key. With several key
fields a key without a value stays without the TAB, which `key_fields.separated` adds: else it would be compared as
part of a key that lacks fields. Sorted as bytes, such lines are in the order of their keys, unless a key has bytes
below TAB: `has_low_bytes` tells, and `sort_options` are then needed.

The index has rows of fixed size, so that a reduce reads only its row: offset, length, records and CRC-32 of a
partition, each as 8 bytes, big endian.
"""

import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import add, contains
from typing import NamedTuple

import msgspec

from boathouse_task import contract, key_fields, lines

_TAB = 0x09
_CACHE_KEYS = 50_000  # size of the cache of keys' partitions, since keys usually repeat
_UNREPEATED_BLOCKS = 15  # blocks after a block of mostly new keys that do not use the cache
_LARGE_LINE_BYTES = 1024 * 1024  # a line of this length is not split, because copies of it are expensive


class Prefixer:
    """Adds prefixes to blocks of whole lines.

    A line without a separator is a key with an empty value and gets a TAB, as Hadoop writes it to the reducer. Without
    it `a`, `a<0x01>...` and `a<TAB>...` would not sort with equal keys adjacent. With `is_combined`, lines that lack
    fields of the key may have their TAB, because a combiner writes them.

    Raises TaskError: InvalidSpec if the partitioner, the comparator or their options are invalid.
    """

    def __init__(self, partitioner: contract.Partitioner, reduces: int, *, is_combined: bool = False) -> None:
        self._fields, self._separator = partitioner.num_key_fields, partitioner.field_separator.encode()
        self._is_combined, self._reduces = is_combined, reduces
        self._choose = key_fields.chooser(partitioner, reduces)
        self._plain = self._separator == b"\t" and self._fields == 1
        self._is_bare = self._separator == b"\t" and self._fields > 1
        self._ordering = None if partitioner.comparator_options is None else key_fields.Ordering(partitioner)
        self._prefixes = [key_fields.prefix(number, key_fields.prefix_width(reduces)) for number in range(reduces)]
        self._known, self._unrepeated = dict[bytes, bytes](), 0

    def __call__(self, block: bytes) -> bytes:
        """Return the block with prefixes and TABs, sortable."""
        if len(block) > _LARGE_LINE_BYTES and block.find(b"\n") == len(block) - 1:
            return self._large(block)
        lines = block[:-1].split(b"\n")
        keys: list[bytes] = []
        if self._is_bare and self._is_combined:
            keys = [key_fields.combined_key(line, self._fields) for line in lines]
            pairs = zip(keys, lines, strict=True)
            lines = [line if line.count(b"\t") >= self._fields else line_key for line_key, line in pairs]
        elif self._is_bare:
            keys = [key_fields.key(line, b"\t", self._fields) for line in lines]
        elif not self._plain:
            keys, lines = key_fields.keyed(lines, self._separator, self._fields, b"\t")
        elif not all(map(contains, lines, repeat(_TAB))):
            lines = [line if b"\t" in line else line + b"\t" for line in lines]
        elif self._reduces == 1 and self._ordering is None:
            return block
        if not keys and (self._ordering is not None or self._reduces > 1):
            keys = [line.partition(b"\t")[0] for line in lines]
        if self._ordering is not None:
            lines = list(map(add, map(self._ordering.sort_key, keys), lines))
        if self._reduces > 1:
            lines = list(map(add, self._prefixes_of(keys), lines))
        lines.append(b"")
        return b"\n".join(lines)

    def _large(self, line: bytes) -> bytes:
        end = _key_end(line, self._separator, self._fields)
        lacks_value = end == len(line) - 1
        if self._is_bare and self._is_combined and lacks_value:
            end = len(line[:-1].removesuffix(b"\t"))
        line_key = line[:end]
        head = self._prefixes_of([line_key])[0] if self._reduces > 1 else b""
        if self._ordering is not None:
            head += self._ordering.sort_key(line_key)
        if (self._plain or self._is_bare) and not lacks_value:
            return head + line if head else line
        if self._is_bare:
            return b"".join([head, line_key, b"\n"])
        return b"".join([head, line_key, b"\t", b"\n" if lacks_value else line[end + len(self._separator) :]])

    def _prefixes_of(self, keys: list[bytes]) -> Sequence[bytes]:
        if self._unrepeated:
            self._unrepeated -= 1
            return self._compute(keys)
        cache = self._known
        new = set(keys).difference(cache)
        if len(new) * 2 > len(keys):
            self._unrepeated = _UNREPEATED_BLOCKS
            return self._compute(keys)
        if len(cache) + len(new) > _CACHE_KEYS:
            cache.clear()
            new = set(keys)
        cache.update(zip(new, self._compute(list(new)), strict=True))
        return list(map(cache.__getitem__, keys))

    def _compute(self, keys: list[bytes]) -> list[bytes]:
        return list(map(self._prefixes.__getitem__, self._choose(keys)))


def _key_end(line: bytes, separator: bytes, fields: int) -> int:
    """Return where the key of a line with its newline ends."""
    end = start = 0
    for _ in range(fields):
        end = line.find(separator, start)
        if end < 0:
            return len(line) - 1
        start = end + len(separator)
    return end


def shuffled(partitioner: contract.Partitioner) -> contract.Partitioner:
    """Return the partitioner for lines whose key ends with a TAB: those of a combiner and of a reduce's input."""
    if partitioner.field_separator == "\t":
        return partitioner
    return msgspec.structs.replace(partitioner, field_separator="\t", num_key_fields=1)


_LOW_BYTES = [bytes([byte]) for byte in range(_TAB)]


def has_low_bytes(block: bytes) -> bool:
    """Return whether the lines have bytes that sort before the TAB after their keys."""
    return any(map(contains, repeat(block), _LOW_BYTES))  # nine times memchr: far faster than a class of bytes


def sort_options(partitioner: contract.Partitioner) -> list[str]:
    """Return options for `sort` that compare the keys of prefixed lines first, as bytes, then the lines."""
    fields = shuffled(partitioner).num_key_fields + (partitioner.comparator_options is not None)
    return ["-t", "\t", f"-k1,{fields}"]


_ROW = struct.Struct(">QQQQ")
ROW_BYTES = _ROW.size


class Section(NamedTuple):
    """Section of a partition in a data file: a row of the index."""

    offset_bytes: int
    length_bytes: int
    records: int
    crc32: int

    @staticmethod
    def unpack(row: bytes) -> "Section":
        """Return the section of a row."""
        return Section(*_ROW.unpack(row))


class SectionWriter:
    """Removes the partition prefixes from sorted lines, and computes the section of each partition."""

    def __init__(self, reduces: int) -> None:
        self._reduces, self._width = reduces, key_fields.prefix_width(reduces)
        self._lengths, self._records, self._crcs = [0] * reduces, [0] * reduces, [0] * reduces

    @property
    def index(self) -> bytes:
        """The index, complete after the last line."""
        offsets = itertools.accumulate(self._lengths[:-1], initial=0)
        return b"".join(map(_ROW.pack, offsets, self._lengths, self._records, self._crcs))

    @property
    def records(self) -> int:
        """Number of lines so far."""
        return sum(self._records)

    def strip(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines without their prefixes, in larger pieces."""
        current = 0
        for block in lines.blocks(chunks):
            for number, section in self._sections(block, current):
                current = number
                self._lengths[number] += len(section)
                self._records[number] += lines.count(section)
                self._crcs[number] = zlib.crc32(section, self._crcs[number])
                yield section

    def _sections(self, block: bytes, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of each partition in a sorted block, without their prefixes."""
        if not self._width:
            yield 0, block
            return
        start = 0
        for number in range(first, self._reduces):
            mark = key_fields.prefix(number, self._width)
            if not block.startswith(mark, start):
                continue
            end = self._end(block, start, number)
            yield number, block[start + self._width : end].replace(b"\n" + mark, b"\n")
            start = end
            if start == len(block):
                return

    def _end(self, block: bytes, start: int, number: int) -> int:
        """Return where the partition that begins at `start` ends in the sorted block."""
        last_line = block.rfind(b"\n", start, len(block) - 1) + 1
        if last_line <= start or block.startswith(key_fields.prefix(number, self._width), last_line):
            return len(block)
        marks = (key_fields.prefix(later, self._width) for later in range(number + 1, self._reduces))
        return next(place for mark in marks if (place := block.find(b"\n" + mark, start)) >= 0) + 1
