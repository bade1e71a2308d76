"""The cleanup task: removes what a job that failed, or is being deleted, left in its output folder.

The work folder goes first and the ownership mark last: while the mark is there, another job asks the leader whether
this one has ended. Every step may be repeated.
"""

from boathouse_task import contract, ownership
from boathouse_task.contract import TaskResult
from boathouse_task.task import Task


def run(task: Task) -> TaskResult:
    """Removes the work folder and the job's ownership marks.

    Raises:
        TaskError: the storage's reasons.
    """
    storage, work = task.storage, task.layout.work
    with task.phase("clean"):
        storage.delete(file.location for file in list(storage.files(work)))
        storage.remove_empty_folders(work)
        ownership.release(task)
    return TaskResult(outcome=contract.SUCCEEDED)
