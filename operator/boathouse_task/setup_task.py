"""The setup task: everything that can be known to fail is found out here, before a map starts; then the split plan."""

import secrets
from collections.abc import Iterator
from concurrent import futures

import msgspec

from boathouse_task import contract, locations, splits
from boathouse_task.contract import Plan, Reason, TaskResult
from boathouse_task.errors import TaskError
from boathouse_task.layout import TEMPORARY
from boathouse_task.locations import Location
from boathouse_task.partition import Prefixer
from boathouse_task.splits import InputFile
from boathouse_task.storage import Storage, StoredObject, not_exclusive
from boathouse_task.task import Task

_RACERS = 8


def run(task: Task) -> TaskResult:
    """Checks the job and posts its plan.

    Raises:
        TaskError: InputNotFound, OutputExists, CommandNotFound, InvalidSpec, StoreNotExclusive, the storage's reasons.
    """
    spec = task.spec
    with task.phase("list"):
        task.place_files()
        for command in (spec.mapper, spec.combiner, spec.reducer):
            if command is not None:
                task.commands.find(command)
        Prefixer(spec.partitioner, max(1, spec.reduces))
        check_output(task)
        plan = make_plan(task)
    with task.phase("race"):
        race(task)
    digest = contract.plan_digest(plan)
    with task.phase("post"):
        if task.client is None:
            task.storage.write(task.layout.plan, msgspec.json.encode(plan))
        else:
            task.client.post_plan(plan, digest)
    return TaskResult(outcome=contract.SUCCEEDED, digest=digest, splits=len(plan.splits), bytes_total=plan.bytes_total)


def check_output(task: Task) -> None:
    """Refuses an output that exists; an empty folder and what failed jobs left under `_temporary` do not count."""
    output = task.layout.output
    temporary = output.child(TEMPORARY).path + "/"
    there = next((file for file in task.storage.files(output) if not file.location.path.startswith(temporary)), None)
    if there is None and (not output.path or task.storage.size(output) is None):
        return
    example = there.location.url if there else output.url
    message = f"the output {output.url} exists ({example}): name another one or delete it"
    raise TaskError(Reason.OUTPUT_EXISTS, message, user_error=True)


def make_plan(task: Task) -> Plan:
    """Lists all inputs in the order they were given, each by name, and splits them."""
    found: list[InputFile] = []
    for url in task.spec.input_urls:
        location = locations.parse(url)
        files = sorted(list_input(task.storage, location), key=lambda file: file.location.path)
        if not files:
            what = (
                "no file matches" if locations.is_glob(location.path) else "there is no such file or folder with files"
            )
            raise TaskError(Reason.INPUT_NOT_FOUND, f"{location.url}: {what}", user_error=True)
        found += [InputFile(url=file.location.url, size_bytes=file.size_bytes) for file in files]
    return splits.plan(found, split_max_bytes=task.spec.split_max_bytes)


def list_input(storage: Storage, location: Location) -> Iterator[StoredObject]:
    """The files of one input: a file, a folder's visible files at any depth, or a glob's matches of both kinds."""
    if locations.is_glob(location.path):
        yield from _matches(storage, location)
        return
    size = storage.size(location) if location.path else None
    if size is not None:
        yield StoredObject(location=location, size_bytes=size)
        return
    depth = len(location.path.split("/")) if location.path else 0
    for file in _without_markers(storage.files(location)):
        if not any(locations.is_hidden(name) for name in file.location.path.split("/")[depth:]):
            yield file


def _matches(storage: Storage, location: Location) -> Iterator[StoredObject]:
    seen: set[str] = set()
    for pattern in locations.expand_braces(location.path):
        if not locations.is_glob(pattern):
            found = list_input(storage, location.at(pattern))
        else:
            below = storage.files(location.at(locations.glob_base(pattern)))
            found = (file for file in _without_markers(below) if locations.matches(pattern, file.location.path))
        for file in found:
            if file.location.path not in seen:
                seen.add(file.location.path)
                yield file


def _without_markers(files: Iterator[StoredObject]) -> Iterator[StoredObject]:
    """Leaves out the empty objects that some tools create in place of folders."""
    listed = list(files)
    folders = {path for file in listed for path in _parents(file.location.path)}
    return (file for file in listed if file.size_bytes or file.location.path not in folders)


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def race(task: Task) -> None:
    """Lets several creators race for one object: exactly one may win, and its content must be what is there.

    Raises:
        TaskError: StoreNotExclusive.
    """
    location = task.layout.step.child(f"_race/{secrets.token_hex(8)}")
    contents = [f"{number} {secrets.token_hex(8)}".encode() for number in range(_RACERS)]
    with futures.ThreadPoolExecutor(_RACERS, "racer") as racers:
        won = list(racers.map(lambda content: task.storage.create(location, content), contents))
    winners = [content for content, is_winner in zip(contents, won, strict=True) if is_winner]
    there = task.storage.read(location)
    task.storage.delete([location])
    if winners != [there]:
        raise not_exclusive(location)
