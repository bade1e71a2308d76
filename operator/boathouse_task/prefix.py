"""Make mapper output sortable.

Each line becomes KEY<TAB>VALUE after its partition's digits and, if a comparator is set, its sort key. With several key
fields a key without a value stays without the TAB, which `key_fields.reduce_input` adds: else it would be compared as
part of a key that lacks fields. Sorted as bytes,
such lines are in the order of their keys, unless a key has bytes below TAB: `has_low_bytes` tells, and `sort_options`
are then needed.
"""

from collections.abc import Sequence
from itertools import repeat
from operator import add, contains

import msgspec

from boathouse_task import key_fields
from boathouse_task.contract import Partitioner
from boathouse_task.key_fields import Ordering, combined_key, key

_TAB = 0x09
_CACHE_KEYS = 50_000
"""Size of the cache of keys' partitions, since keys usually repeat."""
_UNREPEATED_BLOCKS = 15
"""Blocks after a block of mostly new keys that do not use the cache."""
_LARGE_LINE_BYTES = 1024 * 1024
"""A line of this length is not split, because copies of it are expensive."""


class Prefixer:
    """Adds prefixes to blocks of whole lines.

    A line without a separator is a key with an empty value and gets a TAB, as Hadoop writes it to the reducer. Without
    it `a`, `a<0x01>...` and `a<TAB>...` would not sort with equal keys adjacent.

    Args:
        partitioner: the partitioner, and the definition of a key.
        reduces: the number of partitions, at least 1.
        is_combined: whether lines that lack fields of the key may have their TAB, because a combiner writes them.

    Raises:
        TaskError: InvalidSpec if the partitioner, the comparator or their options are invalid.
    """

    def __init__(self, partitioner: Partitioner, reduces: int, *, is_combined: bool = False) -> None:
        self._fields = partitioner.num_key_fields
        self._is_combined = is_combined
        self._separator = partitioner.field_separator.encode()
        self._choose = key_fields.chooser(partitioner, reduces)
        self._reduces = reduces
        self._plain = self._separator == b"\t" and self._fields == 1
        self._is_bare = self._separator == b"\t" and self._fields > 1
        self._ordering = None if partitioner.comparator_options is None else Ordering(partitioner)
        self._prefixes = [key_fields.prefix(number, key_fields.prefix_width(reduces)) for number in range(reduces)]
        self._known: dict[bytes, bytes] = {}
        self._unrepeated = 0

    def __call__(self, block: bytes) -> bytes:
        """Return the block with prefixes and TABs, sortable."""
        if len(block) > _LARGE_LINE_BYTES and block.find(b"\n") == len(block) - 1:
            return self._large(block)
        lines = block[:-1].split(b"\n")
        keys: list[bytes] = []
        if self._is_bare and self._is_combined:
            keys = [combined_key(line, self._fields) for line in lines]
            lines = [
                line if line.count(b"\t") >= self._fields else each for each, line in zip(keys, lines, strict=True)
            ]
        elif self._is_bare:
            keys = [key(line, b"\t", self._fields) for line in lines]
        elif not self._plain:
            keys = [key(line, self._separator, self._fields) for line in lines]
            width = len(self._separator)
            lines = [b"%b\t%b" % (each, line[len(each) + width :]) for each, line in zip(keys, lines, strict=True)]
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
        found = line[:end]
        head = self._prefixes_of([found])[0] if self._reduces > 1 else b""
        if self._ordering is not None:
            head += self._ordering.sort_key(found)
        if (self._plain or self._is_bare) and not lacks_value:
            return head + line if head else line
        if self._is_bare:
            return b"".join([head, found, b"\n"])
        return b"".join([head, found, b"\t", b"\n" if lacks_value else line[end + len(self._separator) :]])

    def _prefixes_of(self, keys: list[bytes]) -> Sequence[bytes]:
        if self._unrepeated:
            self._unrepeated -= 1
            return self._compute(keys)
        known = self._known
        new = set(keys).difference(known)
        if len(new) * 2 > len(keys):
            self._unrepeated = _UNREPEATED_BLOCKS
            return self._compute(keys)
        if len(known) + len(new) > _CACHE_KEYS:
            known.clear()
            new = set(keys)
        fresh = list(new)
        known.update(zip(fresh, self._compute(fresh), strict=True))
        return list(map(known.__getitem__, keys))

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


def shuffled(partitioner: Partitioner) -> Partitioner:
    """Return the partitioner for lines whose key ends with a TAB: those of a combiner and of a reduce's input."""
    if partitioner.field_separator == "\t":
        return partitioner
    return msgspec.structs.replace(partitioner, field_separator="\t", num_key_fields=1)


_LOW_BYTES = [bytes([byte]) for byte in range(_TAB)]


def has_low_bytes(block: bytes) -> bool:
    """Return whether the lines have bytes that sort before the TAB after their keys."""
    return any(map(contains, repeat(block), _LOW_BYTES))  # nine times memchr: far faster than a class of bytes


def sort_options(partitioner: Partitioner) -> list[str]:
    """Return options for `sort` that compare the keys of prefixed lines first, as bytes, then the lines."""
    fields = shuffled(partitioner).num_key_fields + (partitioner.comparator_options is not None)
    return ["-t", "\t", f"-k1,{fields}"]
