"""Read a split of a file by the rules of Hadoop's LineRecordReader.

A line belongs to the split in which it starts; a line that starts exactly at a border belongs to the previous split. So
both borders of a split move in the same way, to the position after the first newline at or after them, and a split is
one range of bytes.
"""

from collections.abc import Iterator
from concurrent import futures

import msgspec

from boathouse_task import compression, lines, locations
from boathouse_task.contract import InputFile, Split
from boathouse_task.storage import Storage

_TAIL_BYTES = 64 * 1024
"""Bytes to read beyond the border with the last window, within which most lines end."""


def read_split(
    storage: Storage, split: Split, window_bytes: int, longest_bytes: int, most_bytes: int | None = None
) -> Iterator[bytes]:
    """Yield the split's lines as chunks, the last with its newline.

    Args:
        storage: the job's storage.
        split: the split.
        window_bytes: size of a read.
        longest_bytes: maximum length of a line.
        most_bytes: the part of the split to read, from its start, before decompression; None: all of it. Small files
            of a split are read as a whole.

    Raises:
        TaskError: RecordTooLong, CorruptInput, or the storage's reasons.
    """
    if split.combined:
        listed = storage.read(locations.parse(split.url))
        passed = 0
        for file in msgspec.json.decode(listed, type=list[InputFile]):
            if most_bytes is not None and passed >= most_bytes:
                return
            passed += file.size_bytes
            whole = Split(url=file.url, offset_bytes=0, length_bytes=file.size_bytes, size_bytes=file.size_bytes)
            yield from read_split(storage, whole, window_bytes, longest_bytes)
        return
    codec = compression.codec_of(split.url)
    is_part = most_bytes is not None and most_bytes < split.length_bytes
    if is_part:
        split = msgspec.structs.replace(split, length_bytes=most_bytes)
    if codec is not None and is_part:
        start = msgspec.structs.replace(split, size_bytes=split.offset_bytes + split.length_bytes)
        compressed = _read_ahead(storage, start, window_bytes)
        chunks = lines.whole(compression.decompressed(compressed, codec, split.url, is_start_of_file=True))
    elif codec is not None:
        chunks = compression.decompressed(_read_ahead(storage, split, window_bytes), codec, split.url)
    else:
        chunks = _own_lines(storage, split, window_bytes, longest_bytes)
    yield from lines.with_final_newline(lines.limited(chunks, longest_bytes, split.url))


def _own_lines(storage: Storage, split: Split, window_bytes: int, longest_bytes: int) -> Iterator[bytes]:
    """Yield the lines that begin in the split; only the file's last line may lack its newline."""
    end = split.offset_bytes + split.length_bytes
    offset, skipping = split.offset_bytes, split.offset_bytes > 0
    for data in _read_ahead(storage, split, window_bytes):
        start = data.find(b"\n") + 1 if skipping else 0
        skipping = skipping and start == 0
        border = data.find(b"\n", max(end - offset, 0)) + 1 if offset + len(data) > end else 0
        if not skipping and start < (border or len(data)):
            yield data[start : border or len(data)]
        if border:
            return
        offset += len(data)
        if skipping and offset - split.offset_bytes > longest_bytes:
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
