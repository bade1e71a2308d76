"""Split input files like Hadoop's FileInputFormat."""

from collections.abc import Iterable, Iterator

from boathouse_task import compression
from boathouse_task.contract import InputFile, Plan, Split

SPLIT_SLOP = 1.1
"""A file's last split may be this much larger than the others (FileInputFormat.SPLIT_SLOP)."""
MAX_COMBINED = 5000
"""Maximum files of one split, each of which is a request to the storage."""


def plan(files: Iterable[InputFile], *, split_max_bytes: int) -> Plan:
    """Return splits of at most `split_max_bytes` (the last of a file: 1.1 times that), the largest first.

    A split is never larger than a block, if the file has blocks (FileInputFormat.computeSplitSize).
    An empty file is one empty split: its map runs, as in Hadoop. A compressed file is one split, whatever its size.
    """
    return planned(split for file in files for split in _file_splits(file, split_max_bytes))


def planned(found: Iterable[Split]) -> Plan:
    """Return the plan of these splits: the largest first, as Hadoop numbers maps; of the same size, in their order."""
    splits = sorted(found, key=lambda split: -split.length_bytes)
    return Plan(splits=splits, bytes_total=sum(split.length_bytes for split in splits))


def by_records(file: InputFile, ends: Iterable[int], records_per_split: int) -> Iterator[Split]:
    """Yield splits of so many records each, like NLineInputFormat, from the positions after the file's records.

    Each but the first begins one byte earlier: its reader skips the rest of the record there. The first ends one byte
    earlier, because a record that begins at a border belongs to the split before it. An empty file has no split.
    """
    begin = end = 0
    for number, end in enumerate(ends, 1):
        if number % records_per_split == 0:
            yield _records_split(file, begin, end)
            begin = end
    if end > begin:
        yield _records_split(file, begin, end)


def _records_split(file: InputFile, begin: int, end: int) -> Split:
    return _split(file, begin - 1, end - begin) if begin else _split(file, 0, end - 1)


def combine(files: Iterable[InputFile], *, split_max_bytes: int) -> Iterator[list[InputFile]]:
    """Group whole files in their order, with at most `split_max_bytes` in each group, which becomes one split.

    A file that is larger, or with which no other fits, is its own group and is split as usual. Empty files are left
    out, but for those that their codec cannot read; if all are left out, the first is kept, so that there is a split.
    """
    every = list(files)
    group: list[InputFile] = []
    size = 0
    for file in [each for each in every if compression.is_content(each.url, each.size_bytes)] or every[:1]:
        if group and (size + file.size_bytes > split_max_bytes or len(group) >= MAX_COMBINED):
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size_bytes
    if group:
        yield group


def _file_splits(file: InputFile, split_max_bytes: int) -> Iterator[Split]:
    if compression.codec_of(file.url):
        yield _split(file, 0, file.size_bytes)
        return
    most = min(split_max_bytes, file.block_bytes or split_max_bytes)
    offset, remaining = 0, file.size_bytes
    while remaining / most > SPLIT_SLOP:
        yield _split(file, offset, most)
        offset, remaining = offset + most, remaining - most
    if remaining or not file.size_bytes:
        yield _split(file, offset, remaining)


def _split(file: InputFile, offset_bytes: int, length_bytes: int) -> Split:
    return Split(url=file.url, offset_bytes=offset_bytes, length_bytes=length_bytes, size_bytes=file.size_bytes)
