"""The split plan as Hadoop's FileInputFormat makes it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from boathouse_task.contract import Plan, Split

SPLIT_SLOP = 1.1
"""A file's last split may be this much larger than the others (FileInputFormat.SPLIT_SLOP)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file of the input."""

    url: str
    size_bytes: int


def plan(files: Iterable[InputFile], *, split_max_bytes: int) -> Plan:
    """Splits of at most `split_max_bytes` (the last of a file: 1.1 times that), in the order of the files.

    An empty file is one empty split: its map runs, as in Hadoop.
    """
    splits = [split for file in files for split in _file_splits(file, split_max_bytes)]
    return Plan(splits=splits, bytes_total=sum(split.length_bytes for split in splits))


def _file_splits(file: InputFile, split_max_bytes: int) -> Iterator[Split]:
    offset, remaining = 0, file.size_bytes
    while remaining / split_max_bytes > SPLIT_SLOP:
        yield _split(file, offset, split_max_bytes)
        offset, remaining = offset + split_max_bytes, remaining - split_max_bytes
    if remaining or not file.size_bytes:
        yield _split(file, offset, remaining)


def _split(file: InputFile, offset_bytes: int, length_bytes: int) -> Split:
    return Split(url=file.url, offset_bytes=offset_bytes, length_bytes=length_bytes, size_bytes=file.size_bytes)
