"""Reduce task: wait for the maps, fetch and merge its sections, run the reducer, write the part, commit.

The shuffle fetches a reduce's section of each map's data to memory within a budget, else to sorted runs on disk. As in
Hadoop, small sections are collected in memory. When they would exceed the budget they are merged into one run on disk
(a spill). A section that is a large part of the budget is written to disk at once.
"""

import itertools
import os
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent import futures

from boathouse_task import commit_task, contract, counters, key_fields, lines, map_task, mapoutput, processes, sorting
from boathouse_task.errors import NotFound, TaskError
from boathouse_task.progress import Client
from boathouse_task.task import Task

_COPIERS = 4  # concurrent fetches; the default of mapreduce.reduce.shuffle.parallelcopies is 5
_MERGE_SHARE = 0.25  # share of the memory that is reserved for merge buffers
_SINGLE_SHARE = 0.25  # maximum share of the budget for one section (mapreduce.reduce.shuffle.memory.limit.percent)
_MOST_IN_MEMORY = 200  # maximum sections in memory, each of which is an open file descriptor
_DESCRIPTORS = "/proc/self/fd"


class Shuffle:
    """Fetches sections concurrently and merges them."""

    def __init__(self, task: Task) -> None:
        self._task, self._lock, self._reserved = task, threading.Lock(), 0
        self._merge_bytes = int(task.environment.sort_bytes * _MERGE_SHARE)
        self._budget_bytes = task.environment.sort_bytes - self._merge_bytes
        self._memory, self._disk = list[sorting.Run](), list[sorting.Run]()
        self._copiers = futures.ThreadPoolExecutor(_COPIERS, "copier")
        self._fetches: list[futures.Future[None]] = []
        self._failed: BaseException | None = None

    def fetch(self, index: int, attempt: int) -> None:
        """Start to fetch this reduce's section of a map's data. Raises TaskError if an earlier fetch has failed."""
        if self._failed is not None:
            raise self._failed
        fetch = self._copiers.submit(self._fetch, index, attempt)
        fetch.add_done_callback(self._note_failure)
        self._fetches.append(fetch)

    def _note_failure(self, fetch: futures.Future[None]) -> None:
        if not fetch.cancelled():
            self._failed = self._failed or fetch.exception()

    def wait(self) -> None:
        """Wait for all fetches. Raises TaskError: ShuffleError, OutOfDisk, or the storage's reasons."""
        try:
            for fetch in self._fetches:
                fetch.result()
        finally:
            self._copiers.shutdown(cancel_futures=True)

    def merged(self) -> Iterator[bytes]:
        """Return the lines of all sections in order, and consume the sections."""
        return self._task.sort.merge(self._disk + self._memory, self._merge_bytes)

    def _fetch(self, index: int, attempt: int) -> None:
        try:
            with self._task.pause.working():
                offset = self._task.spec.index * mapoutput.ROW_BYTES
                row = self._task.storage.read_range(
                    self._task.layout.index(index, attempt), offset, mapoutput.ROW_BYTES
                )
            section = mapoutput.Section.unpack(row)
            if section.length_bytes:
                self._keep(section, self._windows(index, attempt, section))
        except NotFound as error:
            problem = f"the output of map {index}, attempt {attempt}, is missing: {error.message}"
            raise TaskError(contract.Reason.SHUFFLE_ERROR, problem) from None
        self._task.counters.add(counters.SHUFFLED_MAPS, 1)
        self._task.counters.add(counters.REDUCE_SHUFFLE_BYTES, section.length_bytes)
        self._task.bytes_in += section.length_bytes

    def _windows(self, index: int, attempt: int, section: mapoutput.Section) -> Iterator[bytes]:
        """Yield the section's bytes, and verify its checksum at the end."""
        crc, start, window_bytes = 0, section.offset_bytes, self._task.environment.window_bytes
        data = self._task.layout.data(contract.TaskType.MAP, index, attempt)
        windows = self._task.storage.read_windows(data, start, start + section.length_bytes, window_bytes)
        for window in self._task.pause.gated(windows):
            crc = zlib.crc32(window, crc)
            if not self._task.sort.by_key:
                self._task.sort.by_key = mapoutput.has_low_bytes(window)
            yield window
        if crc != section.crc32:
            problem = f"the bytes of {data.url} at {start} do not match the checksum in its index"
            raise TaskError(contract.Reason.SHUFFLE_ERROR, problem)

    def _keep(self, section: mapoutput.Section, windows: Iterator[bytes]) -> None:
        if not self._reserve(section.length_bytes):
            run = self._task.sort.spill(windows, section.records)
            with self._lock:
                self._disk.append(run)
            return
        descriptor = os.memfd_create("section")
        try:
            for window in windows:
                processes.write_all(descriptor, window)
        except BaseException:
            os.close(descriptor)
            raise
        path, size_bytes = f"{_DESCRIPTORS}/{descriptor}", section.length_bytes
        with self._lock:
            self._memory.append(
                sorting.Run(path=path, size_bytes=size_bytes, records=section.records, descriptor=descriptor)
            )

    def _reserve(self, size_bytes: int) -> bool:
        """Reserve memory for a section, after a spill if necessary. Return False if the section must go to disk."""
        if size_bytes > self._budget_bytes * _SINGLE_SHARE:
            return False
        with self._lock:
            is_full = self._reserved + size_bytes > self._budget_bytes or len(self._memory) >= _MOST_IN_MEMORY
            if is_full and self._memory:
                runs, self._memory = self._memory, []
                merged = self._task.pause.gated(self._task.sort.merge(runs, self._merge_bytes))
                self._disk.append(self._task.sort.spill(merged, sum(run.records for run in runs)))
                self._reserved -= sum(run.size_bytes for run in runs)
            if self._reserved + size_bytes > self._budget_bytes:
                return False  # sections in flight use the rest
            self._reserved += size_bytes
            return True


_LOOK_S = 1.0  # interval of reading commits from the storage without a progress endpoint


def run(task: Task) -> contract.TaskResult:
    """Run the attempt."""
    spec, reducer = task.spec, task.spec.reducer
    if reducer is None:
        raise TaskError(contract.Reason.INTERNAL_ERROR, "a reduce task needs a reducer")
    if spec.is_given_up:
        task.counters.add(counters.GIVEN_UP, 1, counters.BOATHOUSE)
        return map_task.commit_nothing(task)
    task.place_files()
    shuffle = Shuffle(task)
    with task.phase("wait"):
        for number, (index, attempt) in enumerate(finished_maps(task), 1):
            shuffle.fetch(index, attempt)
            task.maps_done = number
            task.fraction = number / max(1, spec.maps) / 3
    with task.phase("shuffle"):
        shuffle.wait()
    return map_task.write(task, "reduce", _reduced(task, reducer, shuffle.merged()))


def _reduced(task: Task, reducer: list[str], merged: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what the reducer writes. Without input it runs too, but what it writes and reports is dropped (Hadoop)."""
    groups = _counted_groups(task, map_task.without_sort_keys(task, merged), task.bytes_in)
    first = next(groups, None)
    if first is not None:
        yield from task.run_command(reducer, map_task.with_input_separator(task, itertools.chain([first], groups)))
        return
    for _ in task.run_command(reducer, (), is_reporting=False):
        pass


def finished_maps(task: Task) -> Iterator[tuple[int, int]]:
    """Yield each finished map with its winning attempt, until all have finished."""
    finished: set[int] = set()
    source = _by_orders(task, task.client) if task.client else _by_commits(task)
    while len(finished) < task.spec.maps:
        for index, attempt in next(source):
            if index not in finished:
                finished.add(index)
                yield index, attempt


def _by_orders(task: Task, client: Client) -> Iterator[list[tuple[int, int]]]:
    """Yield finished maps from the operator's orders, by long poll."""
    version = 0
    while True:
        orders = client.orders(version, task.pause.order)
        if orders.cancel:
            raise TaskError(contract.Reason.CANCELLED, "the operator has cancelled this task")
        if orders.version == version and orders.suspend is None:
            time.sleep(_LOOK_S / 10)  # pause between polls that an endpoint answers at once
        version = orders.version
        done = contract.decode_bitmap(orders.maps_done, task.spec.maps)
        if orders.suspend is not None and orders.suspend.id != task.pause.order:
            task.pause.carry_out(
                orders.suspend,
                cgroup=task.environment.cgroup_path,
                lacks_maps=len(done) < task.spec.maps,
                acknowledge=client.acknowledge,
            )
        yield [(index, orders.winners.get(index, 1)) for index in sorted(done)]


def _by_commits(task: Task) -> Iterator[list[tuple[int, int]]]:
    """Yield finished maps from the commits in the storage."""
    while True:
        records = commit_task.committed(task.storage, task.layout.step, contract.TaskType.MAP)
        yield [(index, record.attempt) for index, record in sorted(records.items())]
        time.sleep(_LOOK_S)


def _counted_groups(task: Task, chunks: Iterable[bytes], expected_bytes: int) -> Iterator[bytes]:
    """Yield the shuffled lines in blocks, and count groups: equal keys are adjacent."""
    fields = mapoutput.shuffled(task.spec.partitioner).num_key_fields
    last_key: bytes | None = None
    passed = 0
    for block in lines.blocks(chunks):
        rows = block[:-1].split(b"\n")
        keys = {row.partition(b"\t")[0] if fields == 1 else key_fields.key(row, b"\t", fields) for row in rows}
        task.counters.add(counters.REDUCE_INPUT_GROUPS, len(keys) - (last_key in keys))
        task.counters.add(counters.REDUCE_INPUT_RECORDS, len(rows))
        last_key = key_fields.key(rows[-1], b"\t", fields)
        yield block
        passed += len(block)
        task.fraction = 1 / 3 + passed / max(1, expected_bytes) * 2 / 3
