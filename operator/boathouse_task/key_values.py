"""Keys and values of lines: where a key ends, and lines with another separator after it.

A key is a line's first fields; a line without a further separator is a key with an empty value. Hadoop writes such a
line with a separator at its end, to files too.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat
from operator import contains

from boathouse_task import lines

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


def reduce_input(chunks: Iterable[bytes], fields: int, to: bytes) -> Iterator[bytes]:
    """Yield shuffled lines with `to` after every key (stream.reduce.input.field.separator)."""
    return iter(chunks) if to == TAB and fields == 1 else separated(chunks, TAB, fields, to)


def separated(chunks: Iterable[bytes], separator: bytes, fields: int, to: bytes) -> Iterator[bytes]:
    """Yield lines with `to` between key and value, also after a key without a value.

    Args:
        chunks: lines, cut at any position.
        separator: separates the fields of the lines, and their keys from their values.
        fields: number of fields of a key.
        to: the new separator of key and value.
    """
    width = len(separator)
    for block in lines.blocks(chunks):
        rows = block[:-1].split(b"\n")
        if fields > 1:
            keys = [key(row, separator, fields) for row in rows]
            rows = [b"%b%b%b" % (each, to, row[len(each) + width :]) for each, row in zip(keys, rows, strict=True)]
        elif not all(map(contains, rows, repeat(separator))):
            rows = [row.replace(separator, to, 1) if separator in row else row + to for row in rows]
        elif separator != to:
            rows = [row.replace(separator, to, 1) for row in rows]
        else:
            yield block
            continue
        rows.append(b"")
        yield b"\n".join(rows)
