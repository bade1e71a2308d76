"""The commit task: what the winners wrote becomes the output. Every step may be repeated after a crash at any line.

1. All commits are there; their data are moved to OUTPUT/part-NNNNN (a part that is there with its size has been moved).
2. `promoted.json` in the work folder records that, and what the output is.
3. All else in the work folder is deleted.
4. `_SUCCESS` is created; it holds what `promoted.json` said.
5. `promoted.json` is deleted.
A repeated commit begins at 5 if `_SUCCESS` is this job's, at 3 if `promoted.json` is there, else at 1.
"""

import hashlib
from collections.abc import Sequence
from concurrent import futures

import msgspec

from boathouse_task import commits, contract, counters
from boathouse_task.contract import CommitRecord, Counters, Reason, TaskResult, TaskType
from boathouse_task.errors import NotFound, TaskError
from boathouse_task.layout import TEMPORARY
from boathouse_task.locations import Location
from boathouse_task.task import Task

_WORKERS = 8


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `promoted.json` and of `_SUCCESS`.

    Attributes:
        digest: sha256 over the parts' sha256 digests in hex, in order.
    """

    job_uid: str
    digest: str
    parts: int
    size_bytes: int
    records: int
    counters: Counters


def run(task: Task) -> TaskResult:
    """Commits the job.

    Raises:
        TaskError: CommitMissing, or the storage's reasons.
    """
    layout, storage = task.layout, task.storage
    promoted = _read(task, layout.success)
    if promoted is None or promoted.job_uid != task.spec.job_uid:
        promoted = _read(task, layout.promoted) or _promote(task)
        with task.phase("clean"):
            storage.delete(
                file.location for file in list(storage.files(layout.work)) if file.location != layout.promoted
            )
            storage.write(layout.success, msgspec.json.encode(promoted))
    storage.delete([layout.promoted])
    storage.remove_empty_folders(layout.work)
    storage.remove_empty_folders(layout.output.child(TEMPORARY))
    return TaskResult(
        outcome=contract.SUCCEEDED,
        digest=promoted.digest,
        bytes_total=promoted.size_bytes,
        counters=promoted.counters,
    )


def _read(task: Task, location: Location) -> Promoted | None:
    try:
        return msgspec.json.decode(task.storage.read(location), type=Promoted)
    except (NotFound, msgspec.DecodeError):
        return None


def _promote(task: Task) -> Promoted:
    kind = TaskType.REDUCE if task.spec.reduces else TaskType.MAP
    with task.phase("verify"):
        maps = _commits(task, TaskType.MAP, task.spec.maps)
        results = _commits(task, TaskType.REDUCE, task.spec.reduces) if task.spec.reduces else maps
    with task.phase("promote"):
        with futures.ThreadPoolExecutor(_WORKERS, "promoter") as workers:
            for done, _ in enumerate(workers.map(lambda pair: _move(task, kind, *pair), enumerate(results)), 1):
                task.fraction = done / len(results)
        earlier = [
            record
            for step in range(task.spec.step)
            for record in commits.every(task.storage, task.layout.at_step(step)).values()
        ]
        promoted = _summary(task, [*earlier, *maps, *(results if task.spec.reduces else ())], results)
        task.storage.write(task.layout.promoted, msgspec.json.encode(promoted))
    return promoted


def _commits(task: Task, kind: TaskType, count: int) -> list[CommitRecord]:
    """The commits of all tasks of a kind, in order."""

    def read(index: int) -> CommitRecord | None:
        try:
            return msgspec.json.decode(task.storage.read(task.layout.commit(kind, index)), type=CommitRecord)
        except NotFound:
            return None

    with futures.ThreadPoolExecutor(_WORKERS, "verifier") as workers:
        records = list(workers.map(read, range(count)))
    missing = [contract.task_name(kind, index) for index, record in enumerate(records) if record is None]
    if missing:
        message = f"{len(missing)} of {count} commits are not in {task.layout.commits.url}: {', '.join(missing[:5])}"
        raise TaskError(Reason.COMMIT_MISSING, message, user_error=False)
    return [record for record in records if record is not None]


def _move(task: Task, kind: TaskType, index: int, record: CommitRecord) -> None:
    source, part = task.layout.data(kind, index, record.attempt), task.layout.part(index)
    try:
        task.storage.move(source, part, record.size_bytes)
    except NotFound:
        if task.storage.size(part) != record.size_bytes:
            message = f"{source.url} has gone and {part.url} does not have its {record.size_bytes} bytes"
            raise TaskError(Reason.COMMIT_MISSING, message, user_error=False) from None


def _summary(task: Task, every: Sequence[CommitRecord], results: Sequence[CommitRecord]) -> Promoted:
    return Promoted(
        job_uid=task.spec.job_uid,
        digest=hashlib.sha256("".join(record.digest for record in results).encode()).hexdigest(),
        parts=len(results),
        size_bytes=sum(record.size_bytes for record in results),
        records=sum(record.records for record in results),
        counters=counters.total([record.counters for record in every]),
    )
