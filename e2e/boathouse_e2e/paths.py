"""Where this package keeps what it builds (cache) and what runs (state), by the XDG base directory specification."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = REPOSITORY / "e2e" / "tools"


def cache_folder() -> Path:
    """Return the folder for tools, base file systems and images that are worth keeping: `$XDG_CACHE_HOME/boathouse`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "boathouse"


def images_folder() -> Path:
    """Return where the archives of images are kept."""
    return cache_folder() / "images"


def state_folder() -> Path:
    """Return the folder for what runs: `$XDG_STATE_HOME/boathouse`; one folder beneath it for each cluster."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "boathouse"


@contextmanager
def locked(path: Path, *, remove: bool = False, shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, alone or with others; the kernel releases it when this process ends, however it ends.

    With `remove` the file goes in the end; who waited for it meanwhile takes the lock on a new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            if not _is(file, path):
                continue
            yield
            if remove:
                path.unlink(missing_ok=True)
            return


def _is(file: TextIO, path: Path) -> bool:
    """Return whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
