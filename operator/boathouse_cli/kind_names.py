"""Names of the kinds, as users write them. Imports nothing: `--help` and completion need no more."""

from __future__ import annotations

from typing import Final

MRJOB: Final = "mrjob"
SPARKAPP: Final = "sparkapp"
MRCLUSTER: Final = "mrcluster"
KINDS: Final = (MRJOB, SPARKAPP, MRCLUSTER)
JOBS: Final = (MRJOB, SPARKAPP)
"""Kinds whose objects end by themselves."""
SYNTAX: Final = ", ".join(f"{name}/NAME" for name in KINDS)
JOB_SYNTAX: Final = " or ".join(f"{name}/NAME" for name in JOBS)
