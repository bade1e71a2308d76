"""What ends a task, with its reason.

TaskError
 ├─ NotFound        the storage has no such object
 └─ CommandFailed   a command of the user's, or sort, did not end well
"""

from boathouse_task.contract import Reason


class TaskError(Exception):
    """The task has failed.

    Attributes:
        reason: for conditions and counts.
        message: one line: what, where, what to do.
        user_error: whether the job is at fault rather than the infrastructure.
        stderr_tail: the last part of what the command wrote to its standard error.
        exit_code: of the command; negative: the signal that ended it.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        user_error: bool,
        stderr_tail: str = "",
        exit_code: int | None = None,
    ) -> None:
        super().__init__(f"{reason.value}: {message}")
        self.reason = reason
        self.message = message
        self.user_error = user_error
        self.stderr_tail = stderr_tail
        self.exit_code = exit_code


class NotFound(TaskError):  # noqa: N818 - it names what happened
    """An object that should be in the storage is not."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.STORAGE_ERROR, message, user_error=False)


class CommandFailed(TaskError):  # noqa: N818 - it names what happened
    """A command ended with a non-zero status, by a signal, or could not be started."""
