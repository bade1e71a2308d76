"""Properties of Hadoop (-D) that are fields of an MRJob, with the names that they had before Hadoop 2."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


QUEUE: Final = "mapreduce.job.queuename"


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _seconds(text: str) -> int:
    return math.ceil(int(text) / 1000)


def _percent(text: str) -> int:
    return round(float(text) * 100)


def _mebibytes(text: str) -> str:
    return f"{int(text)}Mi"


FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "mapreduce.job.reduces": ("numReduceTasks", int),
    QUEUE: ("queue", str),
    "mapreduce.map.maxattempts": ("mapper.maxAttempts", int),
    "mapreduce.reduce.maxattempts": ("reducer.maxAttempts", int),
    "mapreduce.map.failures.maxpercent": ("mapper.failuresMaxPercent", int),
    "mapreduce.reduce.failures.maxpercent": ("reducer.failuresMaxPercent", int),
    "mapreduce.map.memory.mb": ("mapper.resources.requests.memory", _mebibytes),
    "mapreduce.reduce.memory.mb": ("reducer.resources.requests.memory", _mebibytes),
    "mapreduce.map.cpu.vcores": ("mapper.resources.requests.cpu", str),
    "mapreduce.reduce.cpu.vcores": ("reducer.resources.requests.cpu", str),
    "mapreduce.task.timeout": ("taskTimeoutSeconds", _seconds),
    "mapreduce.job.reduce.slowstart.completedmaps": ("slowStartCompletedMapsPercent", _percent),
    "mapreduce.input.fileinputformat.split.maxsize": ("splitMaxSize", str),
    "mapreduce.output.fileoutputformat.compress.codec": ("outputCompression", str),
    "textinputformat.record.delimiter": ("recordDelimiter", str),
    "mapreduce.input.lineinputformat.linespermap": ("linesPerMap", int),
    "mapreduce.input.keyvaluelinerecordreader.key.value.separator": ("keyValueSeparator", str),
    "stream.map.input.ignoreKey": ("mapInputIgnoreKey", _boolean),
    "stream.map.input.field.separator": ("mapInputFieldSeparator", str),
    "stream.map.output.field.separator": ("mapOutputFieldSeparator", str),
    "stream.num.map.output.key.fields": ("numMapOutputKeyFields", int),
    "stream.reduce.input.field.separator": ("reduceInputFieldSeparator", str),
    "stream.reduce.output.field.separator": ("reduceOutputFieldSeparator", str),
    "stream.num.reduce.output.key.fields": ("numReduceOutputKeyFields", int),
    "mapreduce.output.textoutputformat.separator": ("outputSeparator", str),
    "stream.non.zero.exit.is.failure": ("nonZeroExitIsFailure", _boolean),
    "mapreduce.map.output.key.field.separator": ("mapOutputKeyFieldSeparator", str),
    "mapreduce.partition.keypartitioner.options": ("partitioner.options", str),
    "mapreduce.partition.keycomparator.options": ("comparator.options", str),
}
"""The field of a property and how its text is read."""
CODECS: Final[Mapping[str, str]] = {
    "GzipCodec": "gzip",
    "BZip2Codec": "bzip2",
    "ZStandardCodec": "zstd",
    "DefaultCodec": "deflate",
    "DeflateCodec": "deflate",
    "SnappyCodec": "snappy",
}
INPUT_FORMATS: Final = (
    "TextInputFormat",
    "CombineTextInputFormat",
    "NLineInputFormat",
    "KeyValueTextInputFormat",
)
PARTITIONERS: Final = ("HashPartitioner", "KeyFieldBasedPartitioner")
COMPARATOR: Final = "KeyFieldBasedComparator"

NAME: Final = "mapreduce.job.name"
COMPRESS: Final = "mapreduce.output.fileoutputformat.compress"
CODEC: Final = "mapreduce.output.fileoutputformat.compress.codec"
COMPARATOR_CLASS: Final = "mapreduce.job.output.key.comparator.class"
PARTITIONER_CLASS: Final = "mapreduce.job.partitioner.class"
UBER: Final = "mapreduce.job.ubertask.enable"
RECURSIVE: Final = "mapreduce.input.fileinputformat.input.dir.recursive"
ENDPOINT: Final = "fs.s3a.endpoint"
PARTITION_OPTIONS: Final = "mapreduce.partition.keypartitioner.options"
PARTITION_FIELDS: Final = "num.key.fields.for.partition"
"""How many fields of a key choose its reduce: a former way to say -k1,N."""
_OF_HADOOP: Final = ("mapreduce.", "mapred.", "yarn.", "dfs.", "hadoop.", "io.", "fs.", "stream.")
"""Beginnings of properties that change what Hadoop does."""
_ODD_NAMES: Final = re.compile(
    r"aggregat(e|or)\..*|create\.empty\.dir\.if\.nonexist|ipc\..*|job\.(end\..*|local\.dir)|jobclient\..*"
    r"|keep\.(failed\.task\.files|task\.files\.pattern)|key\.value\..*|map\.(input\.(file|length|start)|output\..*"
    r"|sort\.class)|min\.num\.spills\.for\.combine|num\.key\.fields\..*|reduce\.output\..*|security\..*"
    r"|sequencefile\.filter\..*|textinputformat\..*|topology\..*|user\.name"
)
"""The others in the classes of 3.4.2, of which many are names before Hadoop 2."""

OLD_NAMES: Final[Mapping[str, str]] = {
    "mapred.job.name": NAME,
    "mapred.reduce.tasks": "mapreduce.job.reduces",
    "mapred.job.queue.name": QUEUE,
    "mapred.map.max.attempts": "mapreduce.map.maxattempts",
    "mapred.reduce.max.attempts": "mapreduce.reduce.maxattempts",
    "mapred.max.map.failures.percent": "mapreduce.map.failures.maxpercent",
    "mapred.max.reduce.failures.percent": "mapreduce.reduce.failures.maxpercent",
    "mapred.job.map.memory.mb": "mapreduce.map.memory.mb",
    "mapred.job.reduce.memory.mb": "mapreduce.reduce.memory.mb",
    "mapred.task.timeout": "mapreduce.task.timeout",
    "mapred.reduce.slowstart.completed.maps": "mapreduce.job.reduce.slowstart.completedmaps",
    "mapred.max.split.size": "mapreduce.input.fileinputformat.split.maxsize",
    "mapred.input.dir.recursive": RECURSIVE,
    "mapred.output.compress": COMPRESS,
    "mapred.output.compression.codec": CODEC,
    "mapred.line.input.format.linespermap": "mapreduce.input.lineinputformat.linespermap",
    "key.value.separator.in.input.line": "mapreduce.input.keyvaluelinerecordreader.key.value.separator",
    "mapred.textoutputformat.separator": "mapreduce.output.textoutputformat.separator",
    "map.output.key.field.separator": "mapreduce.map.output.key.field.separator",
    "mapred.text.key.partitioner.options": "mapreduce.partition.keypartitioner.options",
    "mapred.text.key.comparator.options": "mapreduce.partition.keycomparator.options",
    "mapred.output.key.comparator.class": COMPARATOR_CLASS,
    "mapred.partitioner.class": PARTITIONER_CLASS,
    "mapreduce.partitioner.class": PARTITIONER_CLASS,
}
"""Names before Hadoop 2, which Hadoop still takes."""


def is_of_hadoop(key: str) -> bool:
    """Return whether a property changes what Hadoop does."""
    return key.startswith(_OF_HADOOP) or _ODD_NAMES.fullmatch(key) is not None


def short(name: str) -> str:
    """Return the name of a class without its package."""
    return name.rpartition(".")[2]
