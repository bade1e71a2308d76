"""Command lines of Hadoop as MRJobs: of Hadoop Streaming, or of another jar, which runs on an MRCluster. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_cli.conversion import streaming_lines
from boathouse_cli.conversion.draft import Converted, Draft, Unconvertible
from boathouse_cli.conversion.streaming_lines import object_name

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: Final = ("hadoop", "yarn", "mapred")
_URL: Final = re.compile(r"(s3|local|hdfs)://")
_STREAMING: Final = "hadoop-streaming"


def is_line(words: Sequence[str]) -> bool:
    """Return whether a command line begins with a program of Hadoop."""
    return bool(words) and posixpath.basename(words[0]) in PROGRAMS


def streaming_options(words: Sequence[str]) -> Sequence[str] | None:
    """Return the words after the program, if it is Hadoop Streaming."""
    match words:
        case [_, "jar", jar, *options] if _STREAMING in posixpath.basename(jar):
            return options
        case [_, "streaming", *options]:
            return options
        case _:
            return None


def convert(words: Sequence[str], cluster: str | None) -> Converted:
    """Return the MRJob of a command line; jobs of Hadoop Streaming need no cluster.

    All words after another jar are arguments, as for `hadoop jar`: the first one is the class if the jar names none.
    """
    source = " ".join(words[:2])
    options = streaming_options(words)
    if options is not None:
        return streaming_lines.convert(options, cluster=cluster, source=source)
    draft = Draft(source)
    try:
        return Converted(manifest=_of_jar(words, cluster), notes=())
    except Unconvertible as why:
        return draft.refuse(why)


def _of_jar(words: Sequence[str], cluster: str | None) -> dict[str, Any]:
    if len(words) < 3 or words[1] != "jar":  # noqa: PLR2004 - hadoop jar URL
        raise Unconvertible("jar", "only `hadoop jar URL ARGS...` can be submitted")
    jar, *arguments = words[2:]
    if cluster is None:
        raise Unconvertible(jar, "a jar needs a Hadoop cluster: pass --cluster NAME")
    return {
        "apiVersion": names.API_VERSION,
        "kind": mrjob_names.KIND,
        "metadata": {"name": object_name(posixpath.basename(jar).removesuffix(".jar"))},
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
    raise Unconvertible(
        jar,
        "it is a file of this machine: put it into S3 or HDFS and name its URL, or name its absolute path in the "
        "cluster's image",
    )
