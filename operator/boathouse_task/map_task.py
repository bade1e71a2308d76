"""Map task: split -> mapper -> partitioned, sorted, combined -> one data file and its index -> commit."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator

from boathouse_task import compression, contract, counters, errors, key_fields, lines, mapoutput, reader
from boathouse_task.sorting import CombiningSorter, Sorter, SortProcess
from boathouse_task.task import Task


def run(task: Task) -> contract.TaskResult:
    """Run the attempt."""
    split, mapper = task.spec.split, task.spec.mapper
    if split is None:
        raise errors.TaskError(contract.Reason.INTERNAL_ERROR, "a map task needs a split")
    if task.spec.is_given_up:
        task.counters.add(counters.GIVEN_UP, 1, counters.BOATHOUSE)
        return commit_nothing(task)
    if task.spec.input_format.type is contract.InputFormatType.N_LINE and not split.size_bytes:
        return commit_nothing(task)  # Hadoop has no map for an empty file
    task.place_files()
    if task.spec.reduces == 0:
        return write(task, "read", _mapped(task, mapper, split))
    prepare = task.prepared(mapoutput.Prefixer(task.spec.partitioner, 1 if task.spec.combiner else task.spec.reduces))
    sorter = _sorter(task)
    with task.phase("read"):
        mapped = lines.limited(_mapped(task, mapper, split), task.spec.max_record_bytes, "the mapper's output")
        for block in lines.blocks(mapped):
            task.counters.add(counters.MAP_OUTPUT_RECORDS, lines.count(block))
            task.counters.add(counters.MAP_OUTPUT_BYTES, len(block))
            sorter.write(prepare(block))
    return _upload(task, sorter)


def _mapped(task: Task, mapper: list[str] | None, split: contract.Split) -> Iterator[bytes]:
    given = _counted_input(task, split)
    yield from given if mapper is None else task.run_command(mapper, given)  # which starts with the first block


def _counted_input(task: Task, split: contract.Split) -> Iterator[bytes]:
    """Yield the split's lines and count them; runs in the thread that writes to the mapper."""
    task.counters.add(counters.MAP_INPUT_RECORDS, 0)
    most_bytes = task.spec.sample_bytes[0] if task.spec.sample_bytes else None
    form, longest_bytes = task.spec.input_format, task.spec.max_record_bytes
    line_chunks = reader.read_split(task.storage, split, form, task.environment.window_bytes, longest_bytes, most_bytes)
    for chunk in reader.mapped(line_chunks, form):
        yield chunk
        task.bytes_in += len(chunk)
        task.fraction = task.bytes_in / max(1, split.length_bytes) * 0.9
        task.counters.add(counters.MAP_INPUT_RECORDS, lines.count(chunk))
        task.counters.add(counters.BYTES_READ, len(chunk), counters.INPUT)


def _sorter(task: Task) -> Sorter | CombiningSorter:
    """Return the sorter of prepared lines. Before a combiner, these need only their TABs and their order."""
    spec, budget_bytes = task.spec, task.environment.sort_bytes
    combiner, fields = spec.combiner, spec.reduce_fields
    if not combiner:
        return Sorter(task.sort, budget_bytes)

    def combine(sorting: SortProcess) -> Iterator[bytes]:
        combined = task.run_command(combiner, _combiner_input(task, sorting))
        if fields.output_separator != "\t" or fields.num_output_key_fields > 1:
            separator, to = fields.output_separator.encode(), key_fields.TAB
            combined = key_fields.separated(combined, separator, fields.num_output_key_fields, to)
        return lines.limited(combined, spec.max_record_bytes, "the combiner's output")

    partitioned = task.prepared(
        mapoutput.Prefixer(mapoutput.shuffled(spec.partitioner), spec.reduces, is_combined=True)
    )
    return CombiningSorter(task.sort, budget_bytes, combine=combine, prepare=partitioned)


def _combiner_input(task: Task, sorting: SortProcess) -> Iterator[bytes] | int:
    """Return what the combiner reads: the output of `sort`, by its descriptor if nothing is to be changed."""
    partitioner = task.spec.partitioner
    is_ordered, fields = partitioner.comparator_options is not None, mapoutput.shuffled(partitioner).num_key_fields
    if not is_ordered and fields == 1 and task.spec.reduce_fields.input_separator == "\t":
        return sorting.stdout
    return with_input_separator(task, without_sort_keys(task, sorting.chunks()))


def without_sort_keys(task: Task, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield sorted lines as KEY<TAB>VALUE."""
    return chunks if task.spec.partitioner.comparator_options is None else key_fields.strip(chunks)


def with_input_separator(task: Task, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines of KEY<TAB>VALUE as combiner and reducer read them."""
    separator = task.spec.reduce_fields.input_separator.encode()
    fields = mapoutput.shuffled(task.spec.partitioner).num_key_fields
    is_changed = separator != key_fields.TAB or fields > 1
    return key_fields.separated(chunks, key_fields.TAB, fields, separator) if is_changed else chunks


def _upload(task: Task, sorter: Sorter | CombiningSorter) -> contract.TaskResult:
    spec = task.spec
    with task.phase("sort"):
        in_order = sorter.finish()
        first = next(in_order, b"")
    sections = mapoutput.SectionWriter(spec.reduces)
    with task.phase("upload"):
        data = task.layout.data(contract.TaskType.MAP, spec.index, spec.attempt)
        size = task.storage.upload(data, _counted_output(task, sections.strip(itertools.chain([first], in_order))))
        task.storage.write(task.layout.index(spec.index, spec.attempt), sections.index)
    task.counters.add(counters.MAP_OUTPUT_MATERIALIZED_BYTES, size)
    return finish(task, hashlib.sha256(sections.index).hexdigest(), size, sections.records)


def _counted_output(task: Task, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        task.bytes_out += len(chunk)


def commit_nothing(task: Task) -> contract.TaskResult:
    """Commit an empty result of a map or a reduce, without a file in the output; return the result."""
    spec = task.spec
    task.storage.upload(task.layout.data(spec.task_type, spec.index, spec.attempt), ())
    if spec.task_type is contract.TaskType.REDUCE or not spec.reduces:
        return finish(task, hashlib.sha256().hexdigest(), 0, 0, has_file=False)
    index = mapoutput.SectionWriter(spec.reduces).index
    task.storage.write(task.layout.index(spec.index, spec.attempt), index)
    return finish(task, hashlib.sha256(index).hexdigest(), 0, 0)


def _formed(task: Task, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a command in the format of the output, with a newline after the last line."""
    spec = task.spec
    if spec.output_format.key_only:
        return lines.with_final_newline(chunks)
    to = spec.output_format.separator.encode() if spec.is_last else key_fields.TAB
    if spec.task_type is contract.TaskType.REDUCE:
        command, keys = "reducer", spec.reduce_fields
        separator, fields = keys.output_separator, keys.num_output_key_fields
    else:
        command, separator, fields = "mapper", spec.partitioner.field_separator, spec.partitioner.num_key_fields
    limited = lines.limited(chunks, spec.max_record_bytes, f"the {command}'s output")
    return key_fields.separated(limited, separator.encode(), fields, to)


def write(task: Task, phase: str, chunks: Iterable[bytes]) -> contract.TaskResult:
    """Write what the reducer, or the mapper of a map-only job, writes as a file of the output; commit it."""
    spec, digest, records = task.spec, hashlib.sha256(), 0
    is_reduce = spec.task_type is contract.TaskType.REDUCE
    counter = counters.REDUCE_OUTPUT_RECORDS if is_reduce else counters.MAP_OUTPUT_RECORDS

    def counted() -> Iterator[bytes]:
        nonlocal records  # the command may add to the counter
        for chunk in _formed(task, chunks):
            number = lines.count(chunk)
            records += number
            task.counters.add(counter, number)
            yield chunk

    def packed() -> Iterator[bytes]:
        codec = spec.output_compression if spec.is_last else ""
        for chunk in compression.compressed(counted(), codec) if codec else counted():
            digest.update(chunk)
            task.counters.add(counters.BYTES_WRITTEN, len(chunk), counters.OUTPUT)
            task.bytes_out += len(chunk)
            yield chunk

    with task.phase(phase):
        size = task.storage.upload(task.layout.data(spec.task_type, spec.index, spec.attempt), packed())
    if not is_reduce:
        task.counters.add(counters.MAP_OUTPUT_BYTES, size)
    return finish(task, digest.hexdigest(), size, records, has_file=records > 0 or not spec.output_format.lazy)


def finish(task: Task, digest: str, size_bytes: int, records: int, *, has_file: bool = True) -> contract.TaskResult:
    """Commit the attempt's data; return the result with the attempt that won."""
    task.count_usage()
    with task.phase("commit"):
        winner = task.commit(digest=digest, size_bytes=size_bytes, records=records, has_file=has_file)
    task.fraction = 1.0
    return contract.TaskResult(
        outcome=contract.SUCCEEDED, winner_attempt=winner.attempt, digest=winner.digest, bytes_total=winner.size_bytes
    )
