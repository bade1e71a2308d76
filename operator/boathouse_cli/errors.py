"""Error and exit codes of the commands.

| code | meaning |
|---|---|
| 0 | success; for `watch`, `--wait` and `--follow`: the job succeeded |
| 1 | for `watch`, `--wait` and `--follow`: the job failed |
| 2 | invalid usage: of options, names and values, of a local file, or for the state of the object |
| 3 | the object does not exist; for `convert` and `submit`: something could not be converted |
| 4 | the cluster is unreachable or refuses the request |
| 5 | for `watch --timeout`: the job has not ended in time |
| 130 | ended by Ctrl-C |
"""

import enum


class ExitCode(enum.IntEnum):
    """Exit codes of all commands."""

    JOB_FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_CONVERTED = 3
    CLUSTER = 4
    TIMEOUT = 5


class CommandError(Exception):
    """A failed command; its message is printed as one line and says what to do."""

    def __init__(self, message: str, code: ExitCode = ExitCode.CLUSTER) -> None:
        super().__init__(message)
        self.code = code


class UsageError(CommandError):
    """Options, names, values or a local file are invalid, or the object's state does not allow the command."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.USAGE)


class UnknownKindError(CommandError):
    """The cluster has no such kind of objects."""


class ForbiddenError(CommandError):
    """The user lacks a right."""


class ExpiredError(CommandError):
    """A watch cannot go on from its revision, or a list cannot be continued: it has to be listed anew."""


class StartingError(CommandError):
    """A web server of a pod does not serve yet."""


class AlreadyExistsError(UsageError):
    """An object of this name is there."""
