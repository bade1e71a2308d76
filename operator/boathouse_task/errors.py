"""Errors that end a task, with their reasons, the masks of secrets in their texts, and messages of the log."""

import re
import sys
from collections.abc import Iterable, Mapping

from boathouse_task.contract import Reason

_INFRASTRUCTURE = frozenset(
    {
        Reason.OUT_OF_DISK,
        Reason.STORAGE_ERROR,
        Reason.SHUFFLE_ERROR,
        Reason.COMMIT_MISSING,
        Reason.PROGRESS_UNAVAILABLE,
        Reason.CANCELLED,
        Reason.TERMINATED,
        Reason.INTERNAL_ERROR,
    }
)
"""Reasons that are no user errors."""


class TaskError(Exception):
    """The task has failed.

    Attributes:
        message: one line: what is wrong, where, what to do.
        user_error: whether it is a user error, not an infrastructure error. By default, the reason decides.
        exit_code: exit status of the command; negative: a signal.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        user_error: bool | None = None,
        stderr_tail: str = "",
        exit_code: int | None = None,
    ) -> None:
        super().__init__(f"{reason.value}: {message}")
        self.reason, self.message, self.stderr_tail, self.exit_code = reason, message, stderr_tail, exit_code
        self.user_error = reason not in _INFRASTRUCTURE if user_error is None else user_error


class NotFound(TaskError):  # noqa: N818 - it names what happened
    """An expected object is missing in the storage."""


MASK = "***"
_TELLING = re.compile(r"secret|token|passw|credential|private|(api|access|auth|account)[-_.]?key", re.IGNORECASE)
"""Pattern of the names of variables with secrets, whatever their source."""
_SHORTEST = 4
"""Minimum length of a masked value; shorter values would mask ordinary words."""


def secrets(variables: Mapping[str, str], named: Iterable[str]) -> tuple[str, ...]:
    """Return the values to mask in an environment, the longest first; `named` variables come from Secrets."""
    names = {*named, *(name for name in variables if _TELLING.search(name) and not name.startswith("BOATHOUSE_"))}
    values = {variables.get(name, "").strip() for name in names}
    return tuple(sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True))


def mask(text: str, values: Iterable[str]) -> str:
    """Return the text with the values masked."""
    for value in values:
        text = text.replace(value, MASK)
    return text


def say(text: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(f"boathouse-task: {text}\n")
    sys.stderr.flush()
