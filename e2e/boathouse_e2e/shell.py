"""Run a command to its end; a failure is a ClusterError with the command and the end of what it said."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TAIL_CHARS = 3000


def run(
    *command: str | Path,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> str:
    """Run a command and return what it wrote to stdout.

    Raises:
        ClusterError: it could not be started, did not end in `timeout_s` seconds, or ended with another code than 0.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            timeout=timeout_s,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not on this machine: install it") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"no end after {timeout_s} s: {' '.join(words)}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-TAIL_CHARS:]
        raise ClusterError(f"exit code {done.returncode}: {' '.join(words)}\n{said}")
    return done.stdout


def succeeds(*command: str | Path, env: Mapping[str, str] | None = None, timeout_s: float = 10) -> bool:
    """Return whether a command can be started and ends with code 0 in time."""
    try:
        run(*command, env=env, timeout_s=timeout_s)
    except ClusterError:
        return False
    return True
