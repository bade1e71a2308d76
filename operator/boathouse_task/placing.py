"""Add to a split plan where HDFS stores its splits, so that maps run there. Best effort: a plan needs no locations."""

import bisect
import sys
from collections.abc import Sequence
from concurrent import futures

import msgspec

from boathouse_task import hdfs, locations, web_hdfs
from boathouse_task.contract import Plan, Split
from boathouse_task.task import Task
from boathouse_task.web_hdfs import Block

_WORKERS = 16


def with_locations(task: Task, plan: Plan) -> Plan:
    """Return the plan with the locations of its splits whose files are in HDFS."""
    sizes = {split.url: split.size_bytes for split in plan.splits if not split.combined and split.length_bytes}
    urls = [url for url in sizes if (place := locations.parse(url)).scheme == "hdfs" and place.bucket in task.spec.hdfs]
    if not urls:
        return plan
    with futures.ThreadPoolExecutor(_WORKERS, "locator") as workers:
        found = workers.map(lambda url: _blocks(task, url, sizes[url]), urls)
        return _located(plan, dict(zip(urls, found, strict=True)))


def _blocks(task: Task, url: str, size_bytes: int) -> Sequence[Block]:
    """Return the blocks of a file; none if WebHDFS does not tell."""
    place = locations.parse(url)
    address = task.spec.hdfs[place.bucket].web_hdfs
    try:
        user = hdfs.user(task.environment.variables)
        return web_hdfs.block_hosts(address, place.path, size_bytes, user=user) if address else ()
    except web_hdfs.Unavailable as error:
        sys.stderr.write(f"boathouse-task: the splits of {url} have no locations: {error}\n")
        return ()


def _located(plan: Plan, blocks: dict[str, Sequence[Block]]) -> Plan:
    in_order = {url: sorted(each, key=_offset) for url, each in blocks.items()}
    sets: dict[tuple[str, ...], int] = {}
    splits = []
    for split in plan.splits:
        hosts = _hosts(split, in_order.get(split.url, ()))
        which = sets.setdefault(hosts, len(sets)) if hosts else -1
        splits.append(msgspec.structs.replace(split, locations=which) if hosts else split)
    return msgspec.structs.replace(plan, splits=splits, location_sets=[list(hosts) for hosts in sets])


def _hosts(split: Split, blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the hosts of the block that has most of the split, by name."""
    start, end = split.offset_bytes, split.offset_bytes + split.length_bytes
    first = max(0, bisect.bisect_right(blocks, start, key=_offset) - 1)
    last = bisect.bisect_left(blocks, end, key=_offset)

    def overlap(block: Block) -> int:
        return min(end, block.offset + block.length) - max(start, block.offset)

    largest = max(blocks[first:last], key=overlap, default=None)
    return tuple(sorted(set(largest.hosts))) if largest is not None and overlap(largest) > 0 else ()


def _offset(block: Block) -> int:
    return block.offset
