"""Reduce task: wait for the maps, fetch and merge its sections, run the reducer, write the part, commit."""

import time
from collections.abc import Iterable, Iterator

import msgspec

from boathouse_task import contract, counters, key_values, lines, map_task, prefix
from boathouse_task.contract import CommitRecord, Reason, SuspendOrder, TaskResult, TaskType
from boathouse_task.errors import TaskError
from boathouse_task.shuffle import Shuffle
from boathouse_task.task import Task

_LOOK_S = 1.0
"""Interval of reading commits from the storage without a progress endpoint."""


def run(task: Task) -> TaskResult:
    """Run the attempt.

    Raises:
        TaskError: see `contract.Reason`.
    """
    spec, reducer = task.spec, task.spec.reducer
    if reducer is None:
        raise TaskError(Reason.INTERNAL_ERROR, "a reduce task needs a reducer", user_error=False)
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
    with task.phase("reduce"):
        fields = spec.reduce_fields
        output = map_task.Output(
            task, counters.REDUCE_OUTPUT_RECORDS, fields.output_separator, fields.num_output_key_fields
        )
        data = task.layout.data(TaskType.REDUCE, spec.index, spec.attempt)
        size = task.storage.upload(data, output.passing(_reduced(task, reducer, shuffle.merged())))
    return map_task.finish(task, output.digest, size, output.records, has_file=output.has_file)


def _reduced(task: Task, reducer: list[str], merged: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what the reducer writes. Without input it runs too, but what it writes and reports is dropped (Hadoop)."""
    groups = _counted_groups(task, map_task.without_sort_keys(task, merged), task.bytes_in)
    first = next(groups, None)
    if first is not None:
        yield from task.run_command(reducer, map_task.with_input_separator(task, map_task.chain(first, groups)))
        return
    for _ in task.run_command(reducer, (), is_reporting=False):
        pass


def finished_maps(task: Task) -> Iterator[tuple[int, int]]:
    """Yield each finished map with its winning attempt, until all have finished."""
    finished: set[int] = set()
    source = _by_orders(task) if task.client else _by_commits(task)
    while len(finished) < task.spec.maps:
        for index, attempt in next(source):
            if index not in finished:
                finished.add(index)
                yield index, attempt


def _by_orders(task: Task) -> Iterator[list[tuple[int, int]]]:
    """Yield finished maps from the operator's orders, by long poll."""
    assert task.client is not None
    version = 0
    while True:
        orders = task.client.orders(version, task.pause.order)
        if orders.cancel:
            raise TaskError(Reason.CANCELLED, "the operator has cancelled this task", user_error=False)
        if orders.version == version and orders.suspend is None:
            time.sleep(_LOOK_S / 10)  # pause between polls that an endpoint answers at once
        version = orders.version
        done = contract.decode_bitmap(orders.maps_done, task.spec.maps)
        if orders.suspend is not None and orders.suspend.id != task.pause.order:
            _pause(task, orders.suspend, lacks_maps=len(done) < task.spec.maps)
        yield [(index, orders.winners.get(index, 1)) for index in sorted(done)]


def _pause(task: Task, order: SuspendOrder, *, lacks_maps: bool) -> None:
    """Pause as ordered, or refuse."""
    assert task.client is not None
    task.pause.obey(
        order, cgroup=task.environment.cgroup_path, lacks_maps=lacks_maps, acknowledge=task.client.acknowledge
    )


def _by_commits(task: Task) -> Iterator[list[tuple[int, int]]]:
    """Yield finished maps from the commits in the storage."""
    winners: dict[int, int] = {}
    while True:
        for file in task.storage.files(task.layout.commits):
            kind, _, number = file.location.path.rpartition("/")[2].partition("-")
            if kind == "m" and number.isdecimal() and int(number) not in winners:
                winners[int(number)] = msgspec.json.decode(task.storage.read(file.location), type=CommitRecord).attempt
        yield sorted(winners.items())
        time.sleep(_LOOK_S)


def _counted_groups(task: Task, chunks: Iterable[bytes], expected_bytes: int) -> Iterator[bytes]:
    """Yield the shuffled lines in blocks, and count groups: equal keys are adjacent."""
    fields = prefix.shuffled(task.spec.partitioner).num_key_fields
    last_key: bytes | None = None
    passed = 0
    for block in lines.blocks(chunks):
        rows = block[:-1].split(b"\n")
        keys = (
            {row.partition(b"\t")[0] for row in rows}
            if fields == 1
            else {key_values.key(row, b"\t", fields) for row in rows}
        )
        task.counters.add(counters.REDUCE_INPUT_GROUPS, len(keys) - (last_key in keys))
        task.counters.add(counters.REDUCE_INPUT_RECORDS, len(rows))
        last_key = key_values.key(rows[-1], b"\t", fields)
        yield block
        passed += len(block)
        task.fraction = 1 / 3 + passed / max(1, expected_bytes) * 2 / 3
