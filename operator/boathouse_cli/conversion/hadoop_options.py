"""The words of a command line of Hadoop Streaming, as Hadoop's own parsers read them, and properties (-D) in it.

GenericOptionsParser reads the first options, StreamJob the others (3.4.2, with Commons CLI). `tests/command_lines` has
recordings of both. Generic options are read after those of streaming too, where Hadoop refuses them. Properties that
are fields of an MRJob are known with the names that they had before Hadoop 2.
"""

import dataclasses
import math
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from boathouse_cli.conversion.draft import Draft, Unconvertible

QUEUE: Final = "mapreduce.job.queuename"


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _seconds(text: str) -> int:
    return math.ceil(int(text) / 1000)


def _mebibytes(text: str) -> str:
    return f"{int(text)}Mi"


def _percent(text: str) -> int:
    return round(float(text) * 100)


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
INPUT_FORMATS: Final = ("TextInputFormat", "CombineTextInputFormat", "NLineInputFormat", "KeyValueTextInputFormat")

NAME: Final = "mapreduce.job.name"
COMPRESS: Final = "mapreduce.output.fileoutputformat.compress"
CODEC: Final = "mapreduce.output.fileoutputformat.compress.codec"
COMPARATOR_CLASS: Final = "mapreduce.job.output.key.comparator.class"
PARTITIONER_CLASS: Final = "mapreduce.job.partitioner.class"
RECURSIVE: Final = "mapreduce.input.fileinputformat.input.dir.recursive"
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


CLASS: Final = "org.apache.hadoop.streaming.HadoopStreaming"
GENERIC: Final = frozenset({"D", "archives", "conf", "files", "fs", "jt", "libjars", "tokenCacheFile"})
MANY: Final = frozenset({"input", "file", "cacheFile", "cacheArchive"})
"""Options of which each takes all values that follow."""
SINGLE: Final = frozenset({
    "output", "mapper", "combiner", "reducer", "dfs", "additionalconfspec", "inputformat", "outputformat",
    "partitioner", "numReduceTasks", "inputreader", "mapdebug", "reducedebug", "jobconf", "cmdenv", "io",
})  # fmt: skip
FLAGS: Final = frozenset({"background", "verbose", "debug", "lazyOutput", "help", "info"})
_REPEATABLE: Final = MANY | {"D", "conf", "jobconf", "cmdenv"}
"""Of the others, Hadoop reads the first."""
_NO_EFFECT: Final = {
    "conf": "is not read: write its properties with -D",
    "fs": "has no effect: input and output are URLs",
    "jt": "has no effect: --cluster names the Hadoop cluster",
    "dfs": "has no effect: input and output are URLs",
    "libjars": "has no effect: commands load no classes",
    "additionalconfspec": "is not read: write its properties with -D",
    "mapdebug": "does not run: read kubectl boathouse logs",
    "reducedebug": "does not run: read kubectl boathouse logs",
    "tokenCacheFile": "has no effect: tasks have keys of a Secret",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The words of a command line: values of options, properties by today's names, and where these were said."""

    options: dict[str, list[str]]
    properties: dict[str, str]
    where: dict[str, str]

    def first(self, option: str) -> str | None:
        """Return the value of an option that has one."""
        return next(iter(self.options.get(option, ())), None)

    def every(self, *options: str) -> list[tuple[str, str]]:
        """Return options with their values, of which one may list several."""
        return [
            (option, item)
            for option in options
            for value in self.options.get(option, [])[: None if option in _REPEATABLE else 1]
            for item in split_list(value)
            if item
        ]


def parse(draft: Draft, words: Sequence[str]) -> Line:
    """Return the sorted words of a line, after the jar."""
    options: dict[str, list[str]] = {}
    first = words[0] if words else ""
    if first.lower() in {"dumptb", "loadtb"}:
        raise Unconvertible(first, "runs no job: use it with Hadoop")
    left = list(reversed(words[1:] if first == CLASS or first.lower() == "streamjob" else words))
    while left:
        word = left.pop()
        option, value = _option(word)
        if option in FLAGS:
            if option in {"help", "info"}:
                raise Unconvertible(word, "is no submission")
            options.setdefault(option, [])
            continue
        found = [value] if value is not None else _values(option, left)
        if not found:
            raise Unconvertible(word, "has no value: write one after it")
        if option in options and option not in _REPEATABLE:
            draft.note(word, "is given again: Hadoop reads the first one alone; remove the others")
        options.setdefault(option, []).extend(found)
    for option in _NO_EFFECT.keys() & options.keys():
        draft.note(f"-{option}", _NO_EFFECT[option])
    return _with_properties(options)


def _option(word: str) -> tuple[str, str | None]:
    """Return the name of an option, and the value that is in the same word."""
    option = word.removeprefix("--") if word.startswith("--") else word.removeprefix("-")
    if option != word:
        if option in GENERIC | MANY | SINGLE | FLAGS:
            return option, None
        name, equals, value = option.partition("=")
        if equals and name in GENERIC:
            return name, value
        if word.startswith("-D"):
            return "D", word[2:]
    raise Unconvertible(word, "is no option of Hadoop Streaming: correct it")


def _values(option: str, left: list[str]) -> list[str]:
    """Take the values that follow an option: one, or all up to the next option."""
    found: list[str] = []
    while left and (option in MANY or not found) and not _is_option(left[-1]):
        found.append(_unquoted(left.pop()))
    return found


def _is_option(word: str) -> bool:
    try:
        return word.startswith("-") and bool(_option(word))
    except Unconvertible:
        return False


def _unquoted(value: str) -> str:
    """Return a value without double quotes around it, as Commons CLI does."""
    inner = value[1:-1]
    return inner if len(value) > 1 and value[0] == value[-1] == '"' and '"' not in inner else value


def _with_properties(options: dict[str, list[str]]) -> Line:
    """Return the line with its properties: those of -jobconf are set after those of -D, which are generic."""
    line = Line(options=options, properties={}, where={})
    for option in ("D", "jobconf"):
        for text in options.pop(option, ()):
            key, equals, value = text.partition("=")
            if not equals:
                raise Unconvertible(f"-{option}", f"{text} is no property: write KEY=VALUE")
            name = OLD_NAMES.get(key, key)
            line.properties[name] = value
            line.where[name] = f"-D {key}"
    return line


def split_list(text: str) -> list[str]:
    """Return the items of a list with commas; those in braces belong to a glob, as FileInputFormat reads them."""
    items, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "{") - (char == "}" and depth > 0)
        if char == "," and depth == 0:
            items.append(text[start:place])
            start = place + 1
    return [*items, text[start:]]


_PIECE: Final = re.compile(r"""'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<plain>[^ '"]+)|(?P<open>['"])""")


def split_command(text: str) -> list[str]:
    """Return the words of a command as PipeMapRed splits them: at spaces and quotes, without escapes.

    A quote ends a word, and an empty word does not exist. Raises ValueError for a quote that is not closed, where
    Hadoop takes the rest as a word.
    """
    pieces = list(_PIECE.finditer(text))
    if any(piece["open"] for piece in pieces):
        raise ValueError("No closing quotation")
    return list(filter(None, (piece["single"] or piece["double"] or piece["plain"] for piece in pieces)))


def shipped(command: str, files: Sequence[str]) -> str:
    """Return a command with the name of its program alone, if it is the path of a file that -file ships."""
    program, space, arguments = command.partition(" ")
    is_shipped = posixpath.normpath(program) in map(posixpath.normpath, files)
    return f"{posixpath.basename(program)}{space}{arguments}" if is_shipped else command
