"""Names of the programs whose command lines are converted; imports nothing, so that commands start fast."""

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from typing import Final

from boathouse_cli.conversion.draft import Draft

SPARK_SUBMIT: Final = "spark-submit"
_SPARK_SUBMIT: Final = r"spark[23]?-submit(2?\.cmd|\.sh)?"
"""Distributions that had two versions of Spark call it spark2-submit and spark3-submit."""
SPARK_LINE: Final = re.compile(rf"""^(?!\s*\#)(?:.*[\s/"'])?{_SPARK_SUBMIT}(?=["'\s]|$)""", re.MULTILINE)
"""A line of a script that may run it."""
HADOOP: Final = ("hadoop", "yarn", "mapred")
_STREAMING_JARS: Final = (
    "hadoop-streaming.jar",
    "hadoop-streaming-3.4.2.jar",
    "hadoop-3.4.2-streaming.jar",
    "hadoop-0.20-mapreduce/contrib/streaming/hadoop-streaming-mr1.jar",
)
"""How distributions call it."""
_LOCAL_VARIABLES: Final = ("SPARK_HOME", "HADOOP_HOME", "JAVA_HOME", "PATH")


def is_spark_submit(word: str) -> bool:
    """Return whether a word names spark-submit, with or without a folder."""
    return re.fullmatch(_SPARK_SUBMIT, posixpath.basename(word)) is not None


def is_hadoop(word: str) -> bool:
    """Return whether a word names a program of Hadoop that runs jobs."""
    return posixpath.basename(word) in HADOOP


def find(words: Sequence[str]) -> int | None:
    """Return where the first program is that is converted; it follows variables and programs that start another."""
    return next((n for n, word in enumerate(words) if is_spark_submit(word) or is_hadoop(word)), None)


def is_streaming_jar(word: str) -> bool:
    """Return whether a word names the jar of Hadoop Streaming: with a version before or after, or as a glob."""
    jar = posixpath.basename(word)
    return re.fullmatch(r"hadoop.*streaming.*\.jar", jar) is not None or (
        re.search(r"[*?\[]", jar) is not None
        and any(fnmatch.fnmatchcase(posixpath.basename(known), jar) for known in _STREAMING_JARS)
    )


def note_before(draft: Draft, words: Sequence[str]) -> None:
    """Note what stands before the program and has no effect: variables, and programs that start another."""
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and name.isidentifier():
            if name not in _LOCAL_VARIABLES:
                draft.note(name, "variables of the submitter have no effect: set env, if the program needs it")
        elif posixpath.basename(word) not in ("command", "env", "exec", "nohup", "time"):
            draft.note(word, "has no effect, because no machine runs the line: remove it")
