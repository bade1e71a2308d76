"""The words of a command line of Hadoop Streaming, as Hadoop's own parsers read them.

GenericOptionsParser reads the first options, StreamJob the others (3.4.2, with Commons CLI). `tests/command_lines` has
recordings of both. Generic options are read after those of streaming too, where Hadoop refuses them.
"""

from __future__ import annotations

import dataclasses
import posixpath
from typing import TYPE_CHECKING, Final

from boathouse_cli.conversion import hadoop_properties as properties
from boathouse_cli.conversion.draft import Draft, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASS: Final = "org.apache.hadoop.streaming.HadoopStreaming"
_STREAM_JOB: Final = "streamjob"
_TOOLS: Final = ("dumptb", "loadtb")
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
    """The words of a command line, sorted.

    Attributes:
        options: Values of each option, without its dash.
        properties: By the names of today.
        where: Where a property was said, for notes.
    """

    options: dict[str, list[str]]
    properties: dict[str, str]
    where: dict[str, str]

    def first(self, option: str) -> str | None:
        """Return the value of an option that has one."""
        return next(iter(self.options.get(option, ())), None)

    def every(self, *options: str) -> list[tuple[str, str]]:
        """Return options with their values, of which one may list several."""
        given = [(option, value) for option in options for value in self._values(option)]
        return [(option, item) for option, value in given for item in split_list(value) if item]

    def _values(self, option: str) -> list[str]:
        found = self.options.get(option, [])
        return found if option in _REPEATABLE else found[:1]


def parse(draft: Draft, words: Sequence[str]) -> Line:
    """Return the sorted words of a line, after the jar.

    Raises:
        Unconvertible: Hadoop would refuse it, or it runs no job.
    """
    options: dict[str, list[str]] = {}
    left = list(reversed(_without_class(words)))
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


def _without_class(words: Sequence[str]) -> Sequence[str]:
    first = words[0] if words else ""
    if first.lower() in _TOOLS:
        raise Unconvertible(first, "runs no job: use it with Hadoop")
    return words[1:] if first == CLASS or first.lower() == _STREAM_JOB else words


def _option(word: str) -> tuple[str, str | None]:
    """Return the name of an option, and the value that is in the same word."""
    option = word.removeprefix("--") if word.startswith("--") else word.removeprefix("-")
    if option == word:
        raise Unconvertible(word, "is no option of Hadoop Streaming: correct it")
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
            name = properties.OLD_NAMES.get(key, key)
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


def split_command(text: str) -> list[str]:
    """Return the words of a command as PipeMapRed splits them: at spaces and quotes, without escapes.

    A quote ends a word, and an empty word does not exist.

    Raises:
        ValueError: A quote is not closed; Hadoop takes the rest as a word.
    """
    found, start, quote = [], 0, ""
    for place, char in enumerate(text):
        before = quote
        if char in "'\"" and quote in {"", char}:
            quote = "" if quote else char
        if quote != before or (char == " " and not quote):
            found.append(text[start:place])
            start = place + 1
    if quote:
        raise ValueError("No closing quotation")
    return [word for word in [*found, text[start:]] if word]


def shipped(command: str, files: Sequence[str]) -> str:
    """Return a command with the name of its program alone, if it is the path of a file that -file ships."""
    program, space, arguments = command.partition(" ")
    canonical = {posixpath.normpath(file) for file in files}
    return f"{posixpath.basename(program)}{space}{arguments}" if posixpath.normpath(program) in canonical else command
