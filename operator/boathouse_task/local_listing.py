"""List local files under their names, as obstore names those that it can read."""

import errno
import os
import re
import stat
from collections.abc import Iterator

from boathouse_task import locations
from boathouse_task.stores import Entry

_STAGED = re.compile(r"[^#]*#[0-9]+")
"""Names that obstore keeps for files that it writes."""


def files(folder: str, is_recursive: bool) -> Iterator[Entry]:
    """Yield the files of a folder, through links; without `is_recursive` those directly in it. Pipes are no files.

    Raises:
        OSError: a folder cannot be read, or a link leads to a folder above it.
    """
    return _below(f"/{folder}", is_recursive=is_recursive, above=())


def _below(folder: str, *, is_recursive: bool, above: tuple[tuple[int, int], ...]) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as opened:
            found = sorted(opened, key=lambda each: each.name)
        there = os.stat(folder)  # noqa: PTH116 - as the entries have it
    except (FileNotFoundError, NotADirectoryError):
        return
    if (there.st_dev, there.st_ino) in above:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
    for each in found:
        try:
            status = each.stat()
        except FileNotFoundError:  # deleted meanwhile, or a link to nothing
            continue
        if stat.S_ISREG(status.st_mode):
            yield _entry(each.path, status.st_size)
        elif is_recursive and stat.S_ISDIR(status.st_mode):
            yield from _below(each.path, is_recursive=True, above=(*above, (there.st_dev, there.st_ino)))


def _entry(path: str, size_bytes: int) -> Entry:
    shown = os.fsencode(path).decode("utf-8", "backslashreplace").strip("/")
    problem = "is no UTF-8" if shown != path.strip("/") else locations.problem(shown)
    if not problem and _STAGED.fullmatch(shown.rpartition("/")[2]):
        problem = "ends with # and digits"
    return Entry(path=shown, size_bytes=size_bytes, problem=problem)
