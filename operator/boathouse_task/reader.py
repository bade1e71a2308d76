"""Read a split of a file by the rules of Hadoop's LineRecordReader.

A record belongs to the split in which it starts; one that starts exactly at a border belongs to the previous split. So
both borders of a split move in the same way, to the position after the first end of a record at or after them (of a CR
and LF around the border, after the LF), and a split is one range of bytes.
"""

import itertools
from collections.abc import Iterator
from concurrent import futures

import msgspec

from boathouse_task import compression, lines, locations, records
from boathouse_task.contract import InputFile, Split
from boathouse_task.formats import InputFormat
from boathouse_task.storage import Storage

_TAIL_BYTES = 64 * 1024
"""Bytes to read beyond the border with the last window, within which most lines end."""


def read_split(
    storage: Storage,
    split: Split,
    form: InputFormat,
    window_bytes: int,
    longest_bytes: int,
    most_bytes: int | None = None,
) -> Iterator[bytes]:
    """Yield what the mapper reads of the split as lines, in chunks, the last with its newline.

    Args:
        storage: the job's storage.
        split: the split.
        form: the job's input format.
        window_bytes: size of a read.
        longest_bytes: maximum length of a record.
        most_bytes: the part of the split to read, from its start, before decompression; None: all of it. Small files
            of a split are read as a whole.

    Raises:
        TaskError: RecordTooLong, CorruptInput, or the storage's reasons.
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
        found = records.as_lines(
            itertools.chain([first], (chunk for _, chunk in own)), form, position, longest_bytes, split.url
        )
    elif is_part:
        start = msgspec.structs.replace(split, size_bytes=split.offset_bytes + split.length_bytes)
        compressed = _read_ahead(storage, start, window_bytes)
        chunks = compression.decompressed(compressed, codec, split.url, is_start_of_file=True)
        found = lines.whole(records.as_lines(chunks, form, 0, longest_bytes, split.url))
    else:
        chunks = compression.decompressed(_read_ahead(storage, split, window_bytes), codec, split.url)
        found = records.as_lines(chunks, form, 0, longest_bytes, split.url)
    yield from lines.with_final_newline(lines.limited(found, longest_bytes, split.url))


def _read_files(
    storage: Storage,
    split: Split,
    form: InputFormat,
    window_bytes: int,
    longest_bytes: int,
    most_bytes: int | None,
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
    after_end, undecided = records.ending(form), records.undecided_bytes(form)
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
    """Yield the file's windows from the split's start on, and fetch the next window meanwhile."""
    location = locations.parse(split.url)
    with futures.ThreadPoolExecutor(1, "read-ahead") as fetcher:
        pending: futures.Future[bytes] | None = None
        for start, end in _windows(split, window_bytes):
            ready, pending = pending, fetcher.submit(storage.read_range, location, start, end - start)
            if ready is not None:
                yield ready.result()
        if pending is not None:
            yield pending.result()


def _windows(split: Split, window_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the split and a little more in windows, then the rest of the file, which is rarely needed."""
    offset = split.offset_bytes
    likely_end = min(offset + split.length_bytes + _TAIL_BYTES, split.size_bytes)
    while offset < split.size_bytes:
        end = min(offset + window_bytes, likely_end if offset < likely_end else split.size_bytes)
        yield offset, end
        offset = end
