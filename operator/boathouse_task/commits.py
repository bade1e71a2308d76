"""Read the commits of a step's tasks from the storage."""

from concurrent import futures

import msgspec

from boathouse_task.contract import CommitRecord, TaskType
from boathouse_task.locations import Location
from boathouse_task.storage import Storage

_WORKERS = 8
_LETTERS = {TaskType.MAP: "m", TaskType.REDUCE: "r"}


def every(storage: Storage, step: Location, kind: TaskType | None = None) -> dict[int, CommitRecord]:
    """Return the commits in a step's folder by task index: of maps, reduces, or (None) both, indexed consecutively."""
    letters = tuple(_LETTERS.values()) if kind is None else (_LETTERS[kind],)
    found: dict[int, Location] = {}
    for file in storage.files(step.child("_commit")):
        letter, _, number = file.location.path.rpartition("/")[2].partition("-")
        if letter in letters and number.isdecimal():
            found[len(found) if kind is None else int(number)] = file.location
    with futures.ThreadPoolExecutor(_WORKERS, "commits") as workers:
        contents = workers.map(storage.read, found.values())
        return {
            index: msgspec.json.decode(content, type=CommitRecord)
            for index, content in zip(found, contents, strict=True)
        }
