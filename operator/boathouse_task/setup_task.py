"""Setup task: detect errors of the job before a map starts, then make the split plan.

The first step reads the job's input. A later step reads the data of the previous step's winners.
"""

import functools
import hashlib
import itertools
import secrets
from collections.abc import Iterator
from concurrent import futures

import msgspec

from boathouse_task import (
    commit_task,
    compression,
    contract,
    errors,
    locations,
    mapoutput,
    object_store,
    ownership,
    reader,
    splits,
)
from boathouse_task.storage import Storage
from boathouse_task.task import Task

_RACERS, _RACES = 8, 5
MOST_SPLITS = 50_000  # of NLineInputFormat, after which setup gives up to read input. The operator accepts 40,000.


def run(task: Task) -> contract.TaskResult:
    """Check the job and post its plan.

    Raises TaskError: InputNotFound, OutputExists, CommandNotFound, InvalidSpec, StoreNotExclusive, or the storage's
    reasons.
    """
    spec = task.spec
    with task.phase("list"):
        task.place_files()
        for command in (spec.mapper, spec.combiner, spec.reducer):
            if command is not None:
                task.commands.find(command)
        mapoutput.Prefixer(spec.partitioner, max(1, spec.reduces))
        if spec.step == 0:
            check_output(task)
        plan = splits.with_locations(task, make_plan(task))
    if spec.step == 0:
        with task.phase("race"):
            race(task)
            ownership.acquire(task)  # a job that then fails leaves its mark to another attempt, and to the next job
            check_output(task)  # a former owner may have promoted parts since
    digest = contract.plan_digest(plan)
    with task.phase("post"):
        if task.client is None:
            task.storage.write(task.layout.plan, msgspec.json.encode(plan))
        else:
            task.client.post_plan(plan, digest)
    return contract.TaskResult(
        outcome=contract.SUCCEEDED, digest=digest, splits=len(plan.splits), bytes_total=plan.bytes_total
    )


def check_output(task: Task) -> None:
    """Raise an error if the output exists. An empty folder, and files of failed jobs in `_temporary`, are ignored."""
    output = task.layout.output
    temporary = task.layout.temporary.path + "/"
    there = next((file for file in task.storage.files(output) if not file.location.path.startswith(temporary)), None)
    if there is None and (not output.path or task.storage.size(output) is None):
        return
    example = there.location.url if there else output.url
    raise errors.TaskError(
        contract.Reason.OUTPUT_EXISTS, f"the output {output.url} exists ({example}): set another one or delete it"
    )


def make_plan(task: Task) -> contract.Plan:
    """List the input and split it. Raises TaskError: InputNotFound, CommitMissing, PlanTooLarge, or of storage."""
    spec = task.spec
    inputs = _previous(task) if spec.step else _inputs(task)
    if spec.input_format.type is contract.InputFormatType.N_LINE:
        return splits.planned(_by_records(task, inputs))
    if not (spec.combine_files or spec.step):
        return splits.plan(inputs, split_max_bytes=spec.split_max_bytes)
    made: list[contract.Split] = []
    for group in splits.combine(inputs, split_max_bytes=spec.split_max_bytes):
        if len(group) > 1:
            made.append(_combined(task, group))
        else:
            made += splits.plan(group, split_max_bytes=spec.split_max_bytes).splits
    return splits.planned(made)


def _by_records(task: Task, inputs: list[contract.InputFile]) -> Iterator[contract.Split]:
    """Yield splits of some lines each, for which the files are read. A compressed file is one split, or none if empty.

    If all files are empty, the first is a split, so that there is one. Raises TaskError: PlanTooLarge.
    """
    form, number = task.spec.input_format, 0
    for file in inputs:
        if file.size_bytes and compression.codec_of(file.url):
            made = iter(splits.plan([file], split_max_bytes=max(1, file.size_bytes)).splits)
        else:
            location, window_bytes = locations.parse(file.url), task.environment.window_bytes
            windows = task.storage.read_windows(location, 0, file.size_bytes, window_bytes)
            ends = reader.record_ends(windows, form, task.spec.max_record_bytes, file.url)
            made = splits.by_records(file, ends, form.lines_per_map)
        for split in made:
            number += 1
            if number > MOST_SPLITS:
                problem = f"the input has more than {MOST_SPLITS} times {form.lines_per_map} lines: raise linesPerMap"
                raise errors.TaskError(contract.Reason.PLAN_TOO_LARGE, problem)
            yield split
    if not number:
        yield from splits.plan(inputs[:1], split_max_bytes=1).splits


def _inputs(task: Task) -> list[contract.InputFile]:
    """Return all inputs in their order. Raises TaskError: InputNotFound, InvalidURL for an unreadable name."""
    inputs: list[contract.InputFile] = []
    for url in task.spec.input_urls:
        location = locations.parse(url)
        files = sorted(list_input(task.storage, location), key=lambda file: file.location.path)
        if not files:
            missing = "the file does not exist, or the folder has no files"
            what = "no file matches" if locations.is_glob(location.path) else missing
            raise errors.TaskError(contract.Reason.INPUT_NOT_FOUND, f"{location.url}: {what}")
        if odd := next((file for file in files if file.problem), None):
            raise object_store.unreadable("read", odd.location.url, odd.problem)
        inputs += [
            contract.InputFile(url=file.location.url, size_bytes=file.size_bytes, block_bytes=file.block_bytes)
            for file in files
        ]
    return inputs


def _previous(task: Task) -> list[contract.InputFile]:
    """Return the files of the previous step's winners."""
    kind = contract.TaskType.REDUCE if task.spec.previous_reduces else contract.TaskType.MAP
    folder = task.layout.at_step(task.spec.step - 1)
    records = commit_task.committed(task.storage, folder, kind)
    missing = max([task.spec.previous_reduces, 1, *(index + 1 for index in records)]) - len(records)
    if missing:
        problem = f"{missing} commits of the previous step are missing in {folder.url}/_commit"
        raise errors.TaskError(contract.Reason.COMMIT_MISSING, problem)
    return [
        contract.InputFile(url=task.layout.data(kind, index, record.attempt, folder).url, size_bytes=record.size_bytes)
        for index, record in sorted(records.items())
    ]


def _combined(task: Task, group: list[contract.InputFile]) -> contract.Split:
    """Return one split of several files. Their list is in the work folder under its digest, as attempts may differ."""
    listed = msgspec.json.encode(group)
    location = task.layout.step.child(f"splits/{hashlib.sha256(listed).hexdigest()[:32]}.json")
    task.storage.write(location, listed)
    size = sum(file.size_bytes for file in group)
    return contract.Split(url=location.url, offset_bytes=0, length_bytes=size, size_bytes=size, combined=len(group))


def list_input(storage: Storage, location: locations.Location) -> Iterator[locations.StoredObject]:
    """Yield the files of an input: a file, a folder's visible files at any depth, or a glob's matches of both."""
    if locations.is_glob(location.path):
        yield from _matches(storage, location)
        return
    file = storage.find(location) if location.path else None
    if file is not None:
        yield file
        return
    depth = len(location.path.split("/")) if location.path else 0
    for below in _without_markers(storage.listing(location)):
        if not any(map(locations.is_hidden, below.location.path.split("/")[depth:])):
            yield below


def _matches(storage: Storage, location: locations.Location) -> Iterator[locations.StoredObject]:
    found: dict[str, locations.StoredObject] = {}
    for pattern in locations.expand_braces(location.path):
        if not locations.is_glob(pattern):
            candidates = list_input(storage, location.at(pattern))
        else:
            below = storage.listing(location.at(locations.glob_base(pattern)))
            candidates = (file for file in _without_markers(below) if locations.matches(pattern, file.location.path))
        found |= {file.location.path: file for file in candidates}
    yield from found.values()


def _without_markers(files: Iterator[locations.StoredObject]) -> Iterator[locations.StoredObject]:
    """Return the files without the empty objects that some tools create for folders."""
    listed = list(files)
    parts = (file.location.path.split("/")[:-1] for file in listed)
    folders = {folder for names in parts for folder in itertools.accumulate(names, "{}/{}".format)}
    return (file for file in listed if file.size_bytes or file.location.path not in folders)


def race(task: Task) -> None:
    """Check exclusive creation: of several concurrent creators of one object exactly one must win.

    A race without a winner is inconclusive: the winner's response was lost, and its repeated request failed. Raises
    TaskError: StoreNotExclusive, or StorageError after too many inconclusive races.
    """
    location = task.layout.step.child("_race")
    for _ in range(_RACES):
        location = task.layout.step.child(f"_race/{secrets.token_hex(8)}")
        contents = [f"{number} {secrets.token_hex(8)}".encode() for number in range(_RACERS)]
        with futures.ThreadPoolExecutor(_RACERS, "racer") as racers:
            won = list(racers.map(functools.partial(task.storage.create, location), contents))
        winners = [content for content, is_winner in zip(contents, won, strict=True) if is_winner]
        there = task.storage.read(location)
        task.storage.delete([location])
        if winners == [there]:
            return
        if winners or there not in contents:
            raise object_store.not_exclusive(location.url)
    problem = f"of {_RACERS} concurrent creators of {location.url} none won, {_RACES} times: the store loses responses"
    raise errors.TaskError(contract.Reason.STORAGE_ERROR, problem)
