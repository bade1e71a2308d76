"""The versions that upgrades begin with and rollbacks end with, from the history of this repository."""

from __future__ import annotations

import subprocess
import tarfile
from typing import TYPE_CHECKING, Final

from boathouse_e2e import errors, paths

if TYPE_CHECKING:
    from pathlib import Path

FIRST: Final = "0732b8c"
"""Version 0.1.0."""
BEFORE_POD_TABLE: Final = "742c25f"
"""The last commit before the pod table and the frame for kinds."""
COMMITS: Final = (FIRST, BEFORE_POD_TABLE)


def checkout(folder: Path, commit: str) -> Path:
    """Write the files of a commit into a folder, and return the folder.

    Raises:
        ClusterError: This folder has no git history, or one that does not reach so far back.
    """
    archive = folder.with_suffix(".tar")
    command = ["git", "-C", str(paths.REPOSITORY), "archive", f"--output={archive}", commit]
    folder.parent.mkdir(parents=True, exist_ok=True)
    answer = subprocess.run(command, check=False, capture_output=True, text=True)
    if answer.returncode:
        raise errors.ClusterError(
            f"commit {commit}, from which upgrades are tested, is not in the git history of {paths.REPOSITORY}: "
            f"clone it whole (git fetch --unshallow); git said: {answer.stderr.strip()}"
        )
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()
    return folder
