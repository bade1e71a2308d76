"""Read a split as Hadoop does, and give a mapper what it reads of a record.

TextInputFormat gives the line. NLineInputFormat gives the line after its position in the file, as Hadoop Streaming
does, and KeyValueTextInputFormat the text before and after the first separator. `ignore_key` decides otherwise: a
mapper then gets the value alone, or (False) with TextInputFormat the position too.

By the rules of Hadoop's LineRecordReader, a record belongs to the split in which it starts; one that starts exactly at
a border belongs to the previous split. So both borders of a split move in the same way, to the position after the first
end of a record at or after them (of a CR and LF around the border, after the LF), and a split is one range of bytes.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from concurrent import futures
from functools import partial

import msgspec

from boathouse_task import compression, key_fields, lines, locations
from boathouse_task.contract import LF_ONLY, InputFile, InputFormat, InputFormatType, Split
from boathouse_task.storage import Storage

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ANY_END = re.compile(rb"\r\n?|\n")


def _after_end(delimiter: bytes, data: bytes, start: int, is_last: bool) -> int:
    """Return the position after the first end of a record at or after `start`; 0 if the bytes do not show one.

    Without a delimiter, lines end by CR, LF or CRLF. `is_last` tells whether the file ends with the bytes.
    """
    if delimiter:
        position = data.find(delimiter, start)
        return position + len(delimiter) if position >= 0 else 0
    newline = data.find(b"\n", start)
    position = data.find(b"\r", start, newline) if newline >= 0 else data.find(b"\r", start)
    if position < 0:
        return newline + 1
    if position + 1 < len(data):
        return position + 1 + data.startswith(b"\n", position + 1)
    return position + 1 if is_last else 0  # a LF may follow


def _delimiter(form: InputFormat) -> bytes:
    return b"\n" if form.record_delimiter == LF_ONLY else form.record_delimiter.encode()


def as_lines(
    chunks: Iterable[bytes], form: InputFormat, offset_bytes: int, longest_bytes: int, what: str
) -> Iterator[bytes]:
    """Yield what a mapper reads of the records in chunks of a file, as lines; the last may lack its newline.

    The first record begins at `offset_bytes`. Records are gathered only if the mapper reads their positions; only then
    are they checked (RecordTooLong). `what` names the file.
    """
    if _shows_position(form):
        return _numbered(chunks, form, offset_bytes, longest_bytes, what)
    if form.record_delimiter == LF_ONLY:
        return iter(chunks)
    marked = _without_mark(chunks) if offset_bytes == 0 else chunks
    if form.record_delimiter:
        return lines.delimited(marked, form.record_delimiter.encode())
    return lines.ended_by_newlines(marked)


def _shows_position(form: InputFormat) -> bool:
    if form.type is InputFormatType.N_LINE:
        return not form.ignore_key
    return form.type is InputFormatType.TEXT and form.ignore_key is False


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes without a byte order mark at their start."""
    source, start = iter(chunks), b""
    while len(start) < len(BYTE_ORDER_MARK) and (chunk := next(source, None)) is not None:
        start += chunk
    start = start.removeprefix(BYTE_ORDER_MARK)
    if start:
        yield start
    yield from source


def _numbered(
    chunks: Iterable[bytes], form: InputFormat, offset_bytes: int, longest_bytes: int, what: str
) -> Iterator[bytes]:
    """Yield each record after its position and the separator of the mapper's input."""
    separator = form.field_separator.encode()
    for records in _records(chunks, form, offset_bytes, longest_bytes, what):
        rows = [b"%d%b%b\n" % (start, separator, record) for start, record, _ in records]
        if records[0][0] == 0 and form.record_delimiter != LF_ONLY and records[0][1].startswith(BYTE_ORDER_MARK):
            _, record, end = records[0]
            text = record.removeprefix(BYTE_ORDER_MARK)
            rows[:1] = [b"0%b%b\n" % (separator, text)] if text or end > len(record) else []
        yield b"".join(rows)


def record_ends(chunks: Iterable[bytes], form: InputFormat, longest_bytes: int, what: str) -> Iterator[int]:
    """Yield the position after each record of a file. Raises TaskError: RecordTooLong."""
    for records in _records(chunks, form, 0, longest_bytes, what):
        yield from (end for _, _, end in records)


def _records(
    chunks: Iterable[bytes], form: InputFormat, offset_bytes: int, longest_bytes: int, what: str
) -> Iterator[list[tuple[int, bytes, int]]]:
    """Yield the records in lists: position, content without its end, and position after it."""
    delimiter = _delimiter(form)
    end = re.compile(re.escape(delimiter)) if delimiter else _ANY_END
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) - data.endswith(b"\r") if not delimiter else len(data)  # a LF may follow
        records, start = [], 0
        for match in end.finditer(data, 0, whole):
            records.append((offset_bytes + start, data[start : match.start()], offset_bytes + match.end()))
            start = match.end()
        rest, offset_bytes = data[start:], offset_bytes + start
        if len(rest) > longest_bytes + len(delimiter or b"\r"):
            raise lines.too_long(longest_bytes, f"{what}, at byte {offset_bytes}")
        if records:
            yield records
    if rest:
        yield [(offset_bytes, rest if delimiter else rest.removesuffix(b"\r"), offset_bytes + len(rest))]


def mapped(chunks: Iterable[bytes], form: InputFormat) -> Iterator[bytes]:
    """Yield lines as the mapper reads them: with KeyValueTextInputFormat, key, separator and value."""
    key_end = form.key_value_separator.encode()
    if form.type is not InputFormatType.KEY_VALUE:
        return iter(chunks)
    if form.ignore_key:
        return lines.changed(chunks, lambda rows: [row.partition(key_end)[2] for row in rows])
    return key_fields.separated(chunks, key_end, 1, form.field_separator.encode())


_TAIL_BYTES = 64 * 1024  # bytes to read beyond the border with the last window, within which most lines end


def read_split(
    storage: Storage,
    split: Split,
    form: InputFormat,
    window_bytes: int,
    longest_bytes: int,
    most_bytes: int | None = None,
) -> Iterator[bytes]:
    """Yield what the mapper reads of the split as lines, in chunks, the last with its newline.

    `most_bytes` is the part of the split to read, from its start, before decompression; None: all of it. Small files of
    a split are read as a whole. Raises TaskError: RecordTooLong, CorruptInput, or the storage's reasons.
    """
    if split.combined:
        yield from _read_files(storage, split, form, window_bytes, longest_bytes, most_bytes)
        return
    codec = compression.codec_of(split.url)
    is_part = most_bytes is not None and most_bytes < split.length_bytes
    if is_part:
        split = msgspec.structs.replace(split, length_bytes=most_bytes)
    if codec is None:
        own = _own_records(storage, split, form, window_bytes, longest_bytes)
        position, first = next(own, (split.offset_bytes, b""))
        chunks: Iterator[bytes] = itertools.chain([first], (chunk for _, chunk in own))
        line_chunks = as_lines(chunks, form, position, longest_bytes, split.url)
    else:
        read = msgspec.structs.replace(split, size_bytes=split.offset_bytes + split.length_bytes)
        packed = _read_ahead(storage, read, window_bytes)
        chunks = compression.decompressed(packed, codec, split.url, is_start_of_file=is_part)
        line_chunks = as_lines(chunks, form, 0, longest_bytes, split.url)
        if is_part:
            line_chunks = lines.whole(line_chunks)
    yield from lines.with_final_newline(lines.limited(line_chunks, longest_bytes, split.url))


def _read_files(
    storage: Storage, split: Split, form: InputFormat, window_bytes: int, longest_bytes: int, most_bytes: int | None
) -> Iterator[bytes]:
    """Yield the lines of a split of small files, each read as a whole."""
    listed = storage.read(locations.parse(split.url))
    passed = 0
    for file in msgspec.json.decode(listed, type=list[InputFile]):
        if most_bytes is not None and passed >= most_bytes:
            return
        passed += file.size_bytes
        whole = Split(url=file.url, offset_bytes=0, length_bytes=file.size_bytes, size_bytes=file.size_bytes)
        yield from read_split(storage, whole, form, window_bytes, longest_bytes)


def _own_records(
    storage: Storage, split: Split, form: InputFormat, window_bytes: int, longest_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of the records that begin in the split, in chunks with the position of each.

    Only the file's last record may lack its end.
    """
    after_end = partial(_after_end, _delimiter(form))
    undecided = len(_delimiter(form) or b"\r\n") - 1  # so many of the last bytes may begin the end of a record
    end = split.offset_bytes + split.length_bytes
    offset, held = split.offset_bytes, b""
    begin = 0 if split.offset_bytes == 0 else None  # position of the first record, once it is known
    for window in _read_ahead(storage, split, window_bytes):
        data = held + window if held else window
        reached = offset + len(data)
        is_last = reached == split.size_bytes
        if begin is None and (skipped := after_end(data, 0, is_last)):
            begin = offset + skipped
        border = after_end(data, max(end - offset, 0), is_last) if reached > end else 0
        is_searching = begin is None or (reached > end and not border)
        held = data[max(0, len(data) - undecided) :] if is_searching and undecided and not is_last else b""
        until = border or len(data) - len(held)
        if begin is not None and begin < offset + until:
            yield max(begin, offset), data[max(begin - offset, 0) : until]
        if border:
            return
        offset = reached - len(held)
        if begin is None and offset - split.offset_bytes > longest_bytes:
            raise lines.too_long(longest_bytes, f"{split.url}, at byte {split.offset_bytes}")


def _read_ahead(storage: Storage, split: Split, window_bytes: int) -> Iterator[bytes]:
    """Yield the file's windows from the split's start on, and fetch the next window meanwhile.

    The first windows have the split and a little more, the others the rest of the file, which is rarely needed.
    """
    location, offset = locations.parse(split.url), split.offset_bytes
    likely_end = min(offset + split.length_bytes + _TAIL_BYTES, split.size_bytes)
    with futures.ThreadPoolExecutor(1, "read-ahead") as fetcher:
        pending: futures.Future[bytes] | None = None
        while offset < split.size_bytes:
            end = min(offset + window_bytes, likely_end if offset < likely_end else split.size_bytes)
            ready, pending = pending, fetcher.submit(storage.read_range, location, offset, end - offset)
            offset = end
            if ready is not None:
                yield ready.result()
        if pending is not None:
            yield pending.result()
