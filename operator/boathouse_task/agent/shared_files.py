"""Files of folders that containers of a user's image can write too.

Such a container can replace a file by anything: a symbolic link to a file of the agent's own container, a pipe without
a writer, or an endless file. Nothing of this blocks the agent, or makes it read or write outside of the folder.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_SPECIAL: Final = frozenset({errno.ELOOP, errno.ENXIO})
"""What opening a symbolic link or a socket fails with."""


class UnusableError(Exception):
    """There is something else than a regular file of at most the expected size."""


def read(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
        UnusableError: it is no regular file, or a larger one.
    """
    try:
        opened = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in _SPECIAL:
            raise UnusableError(f"{path} is not a regular file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise UnusableError(f"{path} is not a regular file")
        with open(opened, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
    finally:
        os.close(opened)
    if len(content) > most_bytes:
        raise UnusableError(f"{path} is larger than {most_bytes} bytes")
    return content


def replace(path: Path, content: bytes) -> None:
    """Write a file so that it has its old or its new content after a crash at any time.

    Raises:
        OSError: the folder cannot be written, or a container interferes.
    """
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as opened:  # exclusive, so it follows no link
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
