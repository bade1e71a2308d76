"""Split input files like Hadoop's FileInputFormat, and find where HDFS stores the splits.

The locations come by WebHDFS: hdfs-native does not tell. They are best effort: a plan needs none.
"""

import bisect
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from urllib.parse import quote, urlencode

import msgspec

from boathouse_task import compression, hdfs, locations
from boathouse_task.contract import InputFile, Plan, Split
from boathouse_task.errors import say
from boathouse_task.rest import Rest, RestError
from boathouse_task.task import Task

MOST_HOSTS = 3
"""Hosts of a block that are kept, as many as replicas are usual."""
_WINDOW_BYTES = 4 * 1024**3
"""Part of a file of one request: 4096 blocks of the least size, 1 MiB, need 3 MiB with three replicas."""
_MOST_BYTES = 4 * 1024 * 1024
_TIMEOUT_S = 10.0
_MAX_NAME = 253
"""Maximum length of a host name."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A block of a file."""

    offset: int
    length: int
    hosts: list[str] = []
    """Names of the DataNodes with a replica."""


def block_hosts(
    address: str, path: str, size_bytes: int, *, user: str, monotonic: Callable[[], float] = time.monotonic
) -> Sequence[Block]:
    """Return the blocks of a file, from WebHDFS at HOST:PORT. Raises RestError if there is no such answer."""
    name = f"WebHDFS of {address}"
    name_node = Rest(name, None, host=address, timeout_s=_TIMEOUT_S, most_bytes=_MOST_BYTES, monotonic=monotonic)
    blocks: list[Block] = []
    for offset in range(0, size_bytes, _WINDOW_BYTES):
        length = min(_WINDOW_BYTES, size_bytes - offset)
        query = {"op": "GETFILEBLOCKLOCATIONS", "offset": offset, "length": length, "user.name": user}
        target = f"/webhdfs/v1/{quote(path)}?{urlencode(query)}"
        blocks += name_node.get(target, list[Block], "BlockLocations", "BlockLocation")
    hosts = ([host for host in block.hosts if 0 < len(host) <= _MAX_NAME][:MOST_HOSTS] for block in blocks)
    return [msgspec.structs.replace(block, hosts=kept) for block, kept in zip(blocks, hosts, strict=True)]


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


def planned(all_splits: Iterable[Split]) -> Plan:
    """Return the plan of these splits: the largest first, as Hadoop numbers maps; of the same size, in their order."""
    splits = sorted(all_splits, key=lambda split: -split.length_bytes)
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
    contents = [input_file for input_file in every if compression.is_content(input_file.url, input_file.size_bytes)]
    for file in contents or every[:1]:
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


_WORKERS = 16
_offset = operator.attrgetter("offset")


def with_locations(task: Task, plan: Plan) -> Plan:
    """Return the plan with the locations of its splits whose files are in HDFS."""
    sizes = {split.url: split.size_bytes for split in plan.splits if not split.combined and split.length_bytes}
    urls = [url for url in sizes if (place := locations.parse(url)).scheme == "hdfs" and place.bucket in task.spec.hdfs]
    if not urls:
        return plan
    with futures.ThreadPoolExecutor(_WORKERS, "locator") as workers:
        block_lists = workers.map(lambda url: _blocks(task, url, sizes[url]), urls)
        return _located(plan, dict(zip(urls, block_lists, strict=True)))


def _blocks(task: Task, url: str, size_bytes: int) -> Sequence[Block]:
    """Return the blocks of a file; none if WebHDFS does not tell."""
    place = locations.parse(url)
    address = task.spec.hdfs[place.bucket].web_hdfs
    try:
        user = hdfs.user(task.environment.variables)
        return block_hosts(address, place.path, size_bytes, user=user) if address else ()
    except RestError as error:
        say(f"the splits of {url} have no locations: {error}")
        return ()


def _located(plan: Plan, blocks: dict[str, Sequence[Block]]) -> Plan:
    in_order = {url: sorted(file_blocks, key=_offset) for url, file_blocks in blocks.items()}
    hosts = [_hosts(split, in_order.get(split.url, ())) for split in plan.splits]
    sets = {names: number for number, names in enumerate(dict.fromkeys(filter(None, hosts)))}
    pairs = zip(plan.splits, hosts, strict=True)
    splits = [msgspec.structs.replace(split, locations=sets.get(names, -1)) for split, names in pairs]
    return msgspec.structs.replace(plan, splits=splits, location_sets=[list(names) for names in sets])


def _hosts(split: Split, blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the hosts of the block that has most of the split, by name."""
    start, end = split.offset_bytes, split.offset_bytes + split.length_bytes
    first = max(0, bisect.bisect_right(blocks, start, key=_offset) - 1)
    last = bisect.bisect_left(blocks, end, key=_offset)

    def overlap(block: Block) -> int:
        return min(end, block.offset + block.length) - max(start, block.offset)

    largest = max(blocks[first:last], key=overlap, default=None)
    return tuple(sorted(set(largest.hosts))) if largest is not None and overlap(largest) > 0 else ()
