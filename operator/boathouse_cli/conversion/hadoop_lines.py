"""Command lines of `hadoop jar` as MRJobs that run on an MRCluster. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: Final = ("hadoop", "yarn")
_URL: Final = re.compile(r"(s3|local|hdfs)://")
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME: Final = 40
_STREAMING: Final = "hadoop-streaming"


def is_line(words: Sequence[str]) -> bool:
    """Return whether a command line begins with a program of Hadoop."""
    return bool(words) and posixpath.basename(words[0]) in PROGRAMS


def convert(words: Sequence[str], cluster: str) -> dict[str, Any]:
    """Return the MRJob of a command line.

    All words after the jar are arguments, as for `hadoop jar`: the first one is the class if the jar names none.

    Raises:
        ValueError: What cannot be converted, and what to do.
    """
    if len(words) < 3 or words[1] != "jar":  # noqa: PLR2004 - hadoop jar URL
        raise ValueError(f"{' '.join(words[:2])}: only `hadoop jar URL ARGS...` can be submitted")
    jar, *arguments = words[2:]
    if _STREAMING in posixpath.basename(jar):
        raise ValueError(
            f"{jar}: a job of Hadoop Streaming needs its scripts in the cluster: write an MRJob with clusterRef, "
            "mapper, reducer and files (docs/mrcluster.md)"
        )
    return {
        "apiVersion": names.API_VERSION,
        "kind": mrjob_names.KIND,
        "metadata": {"name": _name(jar)},
        "spec": {
            "clusterRef": {"name": cluster},
            "jar": {"url": _url(jar), **({"arguments": arguments} if arguments else {})},
        },
    }


def _url(jar: str) -> str:
    if _URL.match(jar):
        return jar
    if jar.startswith("/"):
        return f"local://{jar}"
    raise ValueError(
        f"{jar} is a file of this machine: put it into S3 or HDFS and name its URL, or name its absolute path in the "
        "cluster's image"
    )


def _name(jar: str) -> str:
    name = _NO_NAME.sub("-", posixpath.basename(jar).removesuffix(".jar").lower()).strip("-")[:_MAX_NAME].strip("-")
    return name if name[:1].isalpha() else f"job-{name}".strip("-")
