"""Map task: split -> mapper -> partitioned, sorted, combined -> one data file and its index -> commit."""

import hashlib
from collections.abc import Iterable, Iterator

from boathouse_task import compression, contract, counters, lines, ordering, prefix, reader
from boathouse_task.contract import Reason, Split, TaskResult, TaskType
from boathouse_task.errors import TaskError
from boathouse_task.mapoutput import SectionWriter
from boathouse_task.prefix import Prefixer
from boathouse_task.sorting import CombiningSorter, Sorter, SortProcess
from boathouse_task.task import Task


def run(task: Task) -> TaskResult:
    """Run the attempt.

    Raises:
        TaskError: see `contract.Reason`.
    """
    split, mapper = task.spec.split, task.spec.mapper
    if split is None:
        raise TaskError(Reason.INTERNAL_ERROR, "a map task needs a split", user_error=False)
    task.place_files()
    if task.spec.reduces == 0:
        return _map_only(task, mapper, split)
    sorter = _sorter(task)
    with task.phase("read"):
        mapped = lines.limited(_mapped(task, mapper, split), task.spec.max_record_bytes, "the mapper's output")
        for block in lines.blocks(mapped):
            task.counters.add(counters.MAP_OUTPUT_RECORDS, lines.count(block))
            task.counters.add(counters.MAP_OUTPUT_BYTES, len(block))
            sorter.write(block)
    return _upload(task, sorter)


def _mapped(task: Task, mapper: list[str] | None, split: Split) -> Iterator[bytes]:
    """Return the mapper's output, or its input if there is no mapper."""
    given = _counted_input(task, split)
    return given if mapper is None else task.commands.run(mapper, given)


def _counted_input(task: Task, split: Split) -> Iterator[bytes]:
    """Yield the split's lines and count them; runs in the thread that writes to the mapper."""
    task.counters.add(counters.MAP_INPUT_RECORDS, 0)
    most_bytes = task.spec.sample_bytes[0] if task.spec.sample_bytes else None
    window_bytes, longest_bytes = task.environment.window_bytes, task.spec.max_record_bytes
    for chunk in reader.read_split(task.storage, split, window_bytes, longest_bytes, most_bytes):
        yield chunk
        task.bytes_in += len(chunk)
        task.fraction = task.bytes_in / max(1, split.length_bytes) * 0.9
        task.counters.add(counters.MAP_INPUT_RECORDS, lines.count(chunk))
        task.counters.add(counters.BYTES_READ, len(chunk), counters.INPUT)


class _PlainSorter:
    """Partitions and sorts."""

    def __init__(self, task: Task) -> None:
        self._prepare = Prefixer(task.spec.partitioner, task.spec.reduces)
        self._sorter = Sorter(task.sort, task.environment.sort_bytes)

    def write(self, block: bytes) -> None:
        self._sorter.write(self._prepare(block))

    def finish(self) -> Iterator[bytes]:
        return self._sorter.finish()


class _CombiningSorter:
    """Sorts, combines, partitions and sorts again. Before the combiner, lines need only their TABs and their order."""

    def __init__(self, task: Task, combiner: list[str]) -> None:
        asked = task.spec.partitioner
        self._prepare = Prefixer(asked, 1)

        def combine(sorting: SortProcess) -> Iterator[bytes]:
            ordered = asked.comparator_options is not None
            combined = task.commands.run(combiner, ordering.strip(sorting.chunks()) if ordered else sorting.stdout)
            return lines.limited(combined, task.spec.max_record_bytes, "the combiner's output")

        partitioned = Prefixer(prefix.shuffled(asked), task.spec.reduces)
        self._sorter = CombiningSorter(task.sort, task.environment.sort_bytes, combine=combine, prepare=partitioned)

    def write(self, block: bytes) -> None:
        self._sorter.write(self._prepare(block))

    def finish(self) -> Iterator[bytes]:
        return self._sorter.finish()


def _sorter(task: Task) -> _PlainSorter | _CombiningSorter:
    return _CombiningSorter(task, task.spec.combiner) if task.spec.combiner else _PlainSorter(task)


def _upload(task: Task, sorter: _PlainSorter | _CombiningSorter) -> TaskResult:
    spec = task.spec
    with task.phase("sort"):
        in_order = sorter.finish()
        first = next(in_order, b"")
    sections = SectionWriter(spec.reduces)
    with task.phase("upload"):
        data = task.layout.data(TaskType.MAP, spec.index, spec.attempt)
        size = task.storage.upload(data, _counted_output(task, sections.strip(_chain(first, in_order))))
        task.storage.write(task.layout.index(spec.index, spec.attempt), sections.index)
    task.counters.add(counters.MAP_OUTPUT_MATERIALIZED_BYTES, size)
    return finish(task, hashlib.sha256(sections.index).hexdigest(), size, sections.records)


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _counted_output(task: Task, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        task.bytes_out += len(chunk)


def _map_only(task: Task, mapper: list[str] | None, split: Split) -> TaskResult:
    """Write the mapper's output unchanged, in input order, as the output file; return the result."""
    with task.phase("read"):
        output = Output(task, counters.MAP_OUTPUT_RECORDS)
        data = task.layout.data(TaskType.MAP, task.spec.index, task.spec.attempt)
        size = task.storage.upload(data, output.passing(_mapped(task, mapper, split)))
    task.counters.add(counters.MAP_OUTPUT_BYTES, size)
    return finish(task, output.digest, size, output.records)


class Output:
    """Counts a result's records and computes its sha256; compresses it if it is the job's output."""

    def __init__(self, task: Task, counter: str) -> None:
        self._task = task
        self._counter = counter
        self._hash = hashlib.sha256()
        self.records = 0

    @property
    def digest(self) -> str:
        """sha256 of all bytes so far, in hex."""
        return self._hash.hexdigest()

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the file's bytes: the chunks, with a newline after the last line."""
        spec = self._task.spec
        counted = self._counted(chunks)
        codec = spec.output_compression if spec.is_last else ""
        for chunk in compression.compressed(counted, codec) if codec else counted:
            self._hash.update(chunk)
            self._task.counters.add(counters.BYTES_WRITTEN, len(chunk), counters.OUTPUT)
            self._task.bytes_out += len(chunk)
            yield chunk

    def _counted(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in lines.with_final_newline(chunks):
            records = lines.count(chunk)
            self.records += records
            self._task.counters.add(self._counter, records)
            yield chunk


def finish(task: Task, digest: str, size_bytes: int, records: int) -> TaskResult:
    """Commit the attempt's data; return the result with the attempt that won."""
    task.count_usage()
    with task.phase("commit"):
        winner = task.commit(digest=digest, size_bytes=size_bytes, records=records)
    task.fraction = 1.0
    return TaskResult(
        outcome=contract.SUCCEEDED, winner_attempt=winner.attempt, digest=winner.digest, bytes_total=winner.size_bytes
    )
