"""Commit a job's output, and clean up after a job.

Commit task: move the winners' data to the output. All steps can be repeated after a crash at any point.

1. Check that the newest ownership mark is this job's (`ownership`).
2. Check that all commits exist, and move their data to OUTPUT/part-NNNNN, unless a part with its size exists.
3. Write `promoted.json` with the description of the output to the work folder.
4. Delete all other files of the work folder.
5. Check that the output's parts are this job's, by name and total size, and that the newest mark is still this job's.
6. Create `_SUCCESS` exclusively, with the content of `promoted.json`.
7. Delete `promoted.json` and the ownership mark.
A repeated commit begins at 7 if `_SUCCESS` is this job's, at 4 if `promoted.json` exists, else at 1. Several attempts
may run concurrently: the first that creates `_SUCCESS` wins, and an attempt that fails because another was faster finds
this `_SUCCESS`. Marks are read before `_SUCCESS` and removed after its creation, so an attempt that finds neither
commits a job that never had a mark.

Cleanup task: remove the files that a failed or deleted job left in its output folder.

The work folder is removed first and the ownership mark last: while the mark exists, another job asks the leader whether
this job has ended. All steps are idempotent.
"""

import hashlib
import itertools
from collections.abc import Sequence
from concurrent import futures

import msgspec

from boathouse_task import contract, counters, environment, errors, locations, ownership
from boathouse_task.storage import Storage
from boathouse_task.task import Task

_WORKERS = 8


def committed(
    storage: Storage, step: locations.Location, kind: contract.TaskType | None = None
) -> dict[int, contract.CommitRecord]:
    """Return the commits in a step's folder by task index: of maps, reduces, or (None) both, indexed consecutively."""
    letters = contract.LETTERS.values() if kind is None else [contract.LETTERS[kind]]
    commits: dict[int, locations.Location] = {}
    for file in storage.files(step.child("_commit")):
        letter, _, number = file.location.path.rpartition("/")[2].partition("-")
        if letter in letters and number.isdecimal():
            commits[len(commits) if kind is None else int(number)] = file.location
    with futures.ThreadPoolExecutor(_WORKERS, "commits") as workers:
        contents = workers.map(storage.read, commits.values())
        records = (msgspec.json.decode(content, type=contract.CommitRecord) for content in contents)
        return dict(zip(commits, records, strict=True))


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `promoted.json` and of `_SUCCESS`."""

    job_uid: str
    digest: str  # sha256 over the sha256 digests in hex of the tasks' data, in order
    parts: int  # number of the tasks that may have a part
    size_bytes: int
    records: int
    counters: contract.Counters
    left_out: list[int] = []  # those without one (LazyOutputFormat, tasks given up)


def run(task: Task) -> contract.TaskResult:
    """Commit the job. Raises TaskError: CommitMissing, OutputExists (of another job), or the storage's reasons."""
    layout, storage = task.layout, task.storage
    existing_claims = ownership.claims(task)
    promoted = _declared(task) or _commit(task, existing_claims)
    storage.delete([layout.promoted])
    storage.remove_empty_folders(layout.work)
    ownership.release(task)
    return contract.TaskResult(
        outcome=contract.SUCCEEDED, digest=promoted.digest, bytes_total=promoted.size_bytes, counters=promoted.counters
    )


def _declared(task: Task) -> Promoted | None:
    """Return the content of `_SUCCESS`, if any. Raises TaskError: OutputExists if it is another job's."""
    content = task.storage.read_if_exists(task.layout.success)
    promoted = contract.decoded(content or b"", Promoted)
    if content is None or (promoted is not None and promoted.job_uid == task.spec.job_uid):
        return promoted
    raise errors.TaskError(
        contract.Reason.OUTPUT_EXISTS,
        f"{task.layout.success.url} belongs to another job, which has written the output meanwhile: set another output",
    )


def _commit(task: Task, existing_claims: Sequence[ownership.Claim]) -> Promoted:
    try:
        ownership.adopt(task, existing_claims)
        recorded = task.storage.read_if_exists(task.layout.promoted)
        promoted = contract.decoded(recorded or b"", Promoted) or _promote(task)
        with task.phase("clean"):
            files = list(task.storage.files(task.layout.work))
            task.storage.delete(file.location for file in files if file.location != task.layout.promoted)
        _declare(task, promoted)
    except errors.TaskError:
        declared = _declared(task)  # moved by a concurrent attempt, which has deleted the work folder since
        if declared is None:
            raise
        return declared
    return promoted


def _declare(task: Task, promoted: Promoted) -> None:
    """Create `_SUCCESS` after a last check of the output. Raises TaskError: OutputExists."""
    children = task.storage.children(task.layout.output)
    parts = [file for file in children if file.location.path.rpartition("/")[2].startswith(environment.PART)]
    expected = map(task.layout.part, set(range(promoted.parts)).difference(promoted.left_out))
    strangers = {file.location for file in parts}.symmetric_difference(expected)
    if strangers or sum(file.size_bytes for file in parts) != promoted.size_bytes:
        example = min((location.url for location in strangers), default=task.layout.output.url)
        problem = f"something else writes to the output: {example} is not this job's; set another output"
        raise errors.TaskError(contract.Reason.OUTPUT_EXISTS, problem)
    ownership.require(task)
    if not task.storage.create(task.layout.success, msgspec.json.encode(promoted)):
        _declared(task)


def _promote(task: Task) -> Promoted:
    kind = contract.TaskType.REDUCE if task.spec.reduces else contract.TaskType.MAP
    with task.phase("verify"):
        maps = _commits(task, contract.TaskType.MAP, task.spec.maps)
        results = _commits(task, contract.TaskType.REDUCE, task.spec.reduces) if task.spec.reduces else maps
    ownership.require(task)
    with task.phase("promote"):
        with futures.ThreadPoolExecutor(_WORKERS, "promoter") as workers:
            for done, _ in enumerate(workers.map(lambda pair: _move(task, kind, *pair), enumerate(results)), 1):
                task.fraction = done / len(results)
        earlier = (committed(task.storage, task.layout.at_step(step)).values() for step in range(task.spec.step))
        every = itertools.chain(*earlier, maps, results if task.spec.reduces else ())
        promoted = Promoted(
            job_uid=task.spec.job_uid,
            digest=hashlib.sha256("".join(record.digest for record in results).encode()).hexdigest(),
            parts=len(results),
            left_out=[index for index, record in enumerate(results) if not record.has_file],
            size_bytes=sum(record.size_bytes for record in results if record.has_file),
            records=sum(record.records for record in results),
            counters=counters.total(record.counters for record in every),
        )
        task.storage.write(task.layout.promoted, msgspec.json.encode(promoted))
    return promoted


def _commits(task: Task, kind: contract.TaskType, count: int) -> list[contract.CommitRecord]:
    """Return the commits of all tasks of a type, in order. Raises TaskError: CommitMissing."""
    records = committed(task.storage, task.layout.step, kind)
    missing = [contract.task_name(kind, index) for index in range(count) if index not in records]
    if missing:
        what = f"{len(missing)} of {count} commits are missing"
        raise errors.TaskError(
            contract.Reason.COMMIT_MISSING, f"{what} in {task.layout.commits.url}: {', '.join(missing[:5])}"
        )
    return [records[index] for index in range(count)]


def _move(task: Task, kind: contract.TaskType, index: int, record: contract.CommitRecord) -> None:
    if not record.has_file:
        return  # its empty data is deleted with the work folder
    source, part = task.layout.data(kind, index, record.attempt), task.layout.part(index)
    try:
        task.storage.move(source, part, record.size_bytes)
    except errors.NotFound:
        if task.storage.size(part) != record.size_bytes:
            problem = f"{source.url} was deleted and {part.url} does not have its {record.size_bytes} bytes"
            raise errors.TaskError(contract.Reason.COMMIT_MISSING, problem) from None


def clean_up(task: Task) -> contract.TaskResult:
    """Remove the work folder and the job's ownership marks."""
    with task.phase("clean"):
        task.storage.remove_folder(task.layout.work)
        ownership.release(task)
    return contract.TaskResult(outcome=contract.SUCCEEDED)
