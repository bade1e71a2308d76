"""Cleanup task: remove the files that a failed or deleted job left in its output folder.

The work folder is removed first and the ownership mark last: while the mark exists, another job asks the leader whether
this job has ended. All steps are idempotent.
"""

from boathouse_task import contract, ownership
from boathouse_task.contract import TaskResult
from boathouse_task.task import Task


def run(task: Task) -> TaskResult:
    """Remove the work folder and the job's ownership marks.

    Raises:
        TaskError: the storage's reasons.
    """
    storage, work = task.storage, task.layout.work
    with task.phase("clean"):
        storage.delete(file.location for file in list(storage.files(work)))
        storage.remove_empty_folders(work)
        ownership.release(task)
    return TaskResult(outcome=contract.SUCCEEDED)
