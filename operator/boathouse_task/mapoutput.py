"""Format of a map's sorted output: one data file, partition after partition, and its index.

The index has rows of fixed size, so that a reduce reads only its row: offset, length, records and CRC-32 of a
partition, each as 8 bytes, big endian.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from boathouse_task import key_fields, lines

_ROW = struct.Struct(">QQQQ")
ROW_BYTES = _ROW.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Section of a partition in a data file."""

    offset_bytes: int
    length_bytes: int
    records: int
    crc32: int

    def pack(self) -> bytes:
        """Return the section's row in the index."""
        return _ROW.pack(self.offset_bytes, self.length_bytes, self.records, self.crc32)

    @staticmethod
    def unpack(row: bytes) -> "Section":
        """Return the section of a row."""
        offset, length, records, crc = _ROW.unpack(row)
        return Section(offset_bytes=offset, length_bytes=length, records=records, crc32=crc)


class SectionWriter:
    """Removes the partition prefixes from sorted lines, and computes the section of each partition.

    Args:
        reduces: the number of partitions.
    """

    def __init__(self, reduces: int) -> None:
        self._reduces = reduces
        self._width = key_fields.prefix_width(reduces)
        self._lengths = [0] * reduces
        self._records = [0] * reduces
        self._crcs = [0] * reduces

    @property
    def index(self) -> bytes:
        """The index, complete after the last line."""
        offset, rows = 0, []
        for length, records, crc in zip(self._lengths, self._records, self._crcs, strict=True):
            rows.append(Section(offset_bytes=offset, length_bytes=length, records=records, crc32=crc).pack())
            offset += length
        return b"".join(rows)

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
                self._note(number, section)
                yield section

    def _note(self, number: int, section: bytes) -> None:
        self._lengths[number] += len(section)
        self._records[number] += lines.count(section)
        self._crcs[number] = zlib.crc32(section, self._crcs[number])

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
        following = (
            block.find(b"\n" + key_fields.prefix(other, self._width), start)
            for other in range(number + 1, self._reduces)
        )
        return next(place for place in following if place >= 0) + 1
