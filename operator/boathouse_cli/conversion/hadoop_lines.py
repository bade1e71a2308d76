"""Command lines of Hadoop as MRJobs: of Hadoop Streaming, or of another jar, which runs on an MRCluster. Pure."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from typing import TYPE_CHECKING, Final

from boathouse.resources.mrjob.definition import MRJOB
from boathouse_cli.conversion import programs, streaming_lines
from boathouse_cli.conversion.draft import Converted, Draft, Unconvertible
from boathouse_cli.conversion.streaming_lines import object_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_cli.conversion.carried import Carried

_URL: Final = re.compile(r"(s3|local|hdfs)://")
_IGNORED: Final = ("--debug", "--daemon")
_WITH_VALUE: Final = ("--config", "--loglevel", "--buildpaths", "--hostnames", "--hosts", "--workers")


def is_line(words: Sequence[str]) -> bool:
    """Return whether a command line runs a program of Hadoop."""
    at = programs.find(words)
    return at is not None and programs.is_hadoop(words[at])


def convert(words: Sequence[str], cluster: str | None, carried: Carried | None = None) -> Converted:
    """Return the MRJob of a command line; jobs of Hadoop Streaming need no cluster.

    All words after another jar are arguments, as for `hadoop jar`: the first one is the class if the jar names none.
    """
    at = programs.find(words) or 0
    draft = Draft(" ".join(words[at : at + 2]), MRJOB)
    programs.note_before(draft, words[:at])
    try:
        words = _without_options(draft, words[at + 1 :])
        options = _streaming_options(words)
        if options is not None:
            found = streaming_lines.convert(options, cluster=cluster, source=draft.source, carried=carried)
            return dataclasses.replace(found, notes=(*draft.notes, *found.notes))
        return _of_jar(draft, words, cluster)
    except Unconvertible as why:
        return draft.refuse(why)


def _without_options(draft: Draft, words: Sequence[str]) -> Sequence[str]:
    """Return the words after the options of the program itself, such as --config."""
    while words and words[0].startswith("--"):
        if words[0] == "--config":
            draft.note("--config", "is not read: write its properties with -D")
        elif words[0] not in (*_IGNORED, *_WITH_VALUE):
            raise Unconvertible(words[0], "is no option of this program: correct it")
        words = words[2 if words[0] in _WITH_VALUE else 1 :]
    return words


def _streaming_options(words: Sequence[str]) -> Sequence[str] | None:
    """Return the words after the program, if it is Hadoop Streaming."""
    match words:
        case ["jar", jar, *options] if programs.is_streaming_jar(jar):
            return options
        case ["streaming", *options]:
            return options
        case _:
            return None


def _of_jar(draft: Draft, words: Sequence[str], cluster: str | None) -> Converted:
    if len(words) < 2 or words[0] != "jar":  # noqa: PLR2004 - jar URL
        raise Unconvertible("jar", "only `hadoop jar URL ARGS...` can be submitted")
    jar, *arguments = words[1:]
    if cluster is None:
        raise Unconvertible(jar, "a jar needs a Hadoop cluster: pass --cluster NAME")
    draft.metadata["name"] = object_name(posixpath.basename(jar).removesuffix(".jar"))
    draft.put("clusterRef.name", cluster)
    draft.put("jar.url", _url(jar))
    if arguments:
        draft.put("jar.arguments", arguments)
    return draft.finish()


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
