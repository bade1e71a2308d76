"""The same word count by other means: coreutils on this machine, nothing of Boathouse."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from boathouse_e2e import errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WORD_COUNT: Final = r"""
set -euo pipefail
cat "$@" | tr -cs 'A-Za-z' '\n' | tr 'A-Z' 'a-z' | grep . | sort -S 256M | uniq -c
"""
AS_UNIQ_PRINTS: Final = r"""
set -euo pipefail
cat "$@" | sort | awk -F '\t' '{printf "%7d %s\n", $2, $1}'
"""
TOOLS: Final = ("bash", "tr", "grep", "sort", "uniq", "awk")


def word_count(texts: Sequence[Path], target: Path) -> None:
    """Count the words of texts with `tr | grep | sort | uniq -c` into a file.

    Raises:
        ClusterError: One of these tools is missing or failed.
    """
    _pipeline(WORD_COUNT, texts, target)


def job_output(parts: Sequence[Path], target: Path) -> None:
    """Bring a job's WORD<TAB>COUNT parts into the form and order of `word_count`, to be compared byte by byte.

    Raises:
        ClusterError: One of these tools is missing or failed.
    """
    _pipeline(AS_UNIQ_PRINTS, parts, target)


def _pipeline(script: str, files: Sequence[Path], target: Path) -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise errors.ClusterError(f"{', '.join(missing)} not found: install coreutils, grep and awk")
    command = ["bash", "-c", script, "reference", *map(str, files)]
    with target.open("wb") as out:
        done = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, env=os.environ | {"LC_ALL": "C"}, check=False
        )
    if done.returncode != 0:
        raise errors.ClusterError(f"the reference's pipeline failed: {done.stderr.decode(errors='replace').strip()}")
