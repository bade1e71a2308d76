"""Command lines of `spark-submit` as SparkApps, and the words of a shell's script."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from typing import TYPE_CHECKING, Final

import javaproperties

from boathouse_cli.conversion import pod_fields, programs
from boathouse_cli.conversion.draft import CARRIED_PATH, CARRIED_VOLUME, Converted, Draft, Unconvertible
from boathouse_cli.conversion.properties import Properties, program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from boathouse_cli.conversion.draft import Carried


_EXPANSION: Final = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}\n]*\}?|\(|[0-9@*#?$!-])|`")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_OPERATORS: Final = "|;&<>()"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word of a command.

    Attributes:
        text: Without quotes and escapes.
        expansions: What a shell would replace in it: variables, other commands' output, names of files.
    """

    text: str
    expansions: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line of a script, continued by backslashes and quotes.

    Attributes:
        line: Its number, from 1.
        source: As it was written.
        operator: The first operator of the shell in it, such as a pipe; None: it is one command.
        is_open: A quote is not closed.
    """

    line: int
    source: str
    words: tuple[Word, ...]
    operator: str | None = None
    is_open: bool = False


def commands(text: str) -> Iterator[Command]:
    """Yield the commands of a script; comments and empty lines are left out."""
    reader = _Reader(text.replace("\r\n", "\n"))
    while (command := reader.command()) is not None:
        yield command


class _Reader:
    """Reads a text from its start to its end, character by character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._is_open = False

    def command(self) -> Command | None:
        """Return the next line that has words; None: there is none."""
        words: list[Word] = []
        operator = None
        start = self._at
        while (char := self._peek()) or words:
            if char in {"", "\n"}:
                self._at += 1
                if words:
                    return Command(
                        line=self._text.count("\n", 0, start) + 1,
                        source=self._text[start : self._at],
                        words=tuple(words),
                        operator=operator,
                        is_open=self._is_open,
                    )
            elif char == "#":
                self._at = self._end_of_line()
            elif char in _OPERATORS:
                operator = operator or char
                self._at += 1
            elif not self._skips_blank(char):
                start = start if words else self._at
                words.append(self._word())
        return None

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _skips_blank(self, char: str) -> bool:
        length = 2 if self._text.startswith("\\\n", self._at) else 1 if char.isspace() else 0
        self._at += length
        return length > 0

    def _word(self) -> Word:
        parts: list[str] = []
        expansions: list[str] = []
        start = self._at
        while (char := self._peek()) and not char.isspace() and char not in _OPERATORS:
            self._at += 1
            if char == "\\":
                escaped = self._take()
                parts.append("" if escaped == "\n" else escaped)
            elif char == "'":
                parts.append(self._quoted("'"))
            elif char == '"':
                parts.append(self._double_quoted(expansions))
            elif char == "$" and self._peek() == "'":
                self._at += 1
                parts.append(self._escaped())
            else:
                parts.append(char + self._expansion(char, expansions))
        text = "".join(parts)
        expansions += _names_of_files(self._text[start : self._at])
        return Word(text=text, expansions=tuple(expansions))

    def _take(self) -> str:
        char = self._peek()
        self._at += 1
        self._is_open |= not char
        return char

    def _quoted(self, quote: str) -> str:
        end = self._text.find(quote, self._at)
        self._is_open |= end < 0
        end = len(self._text) if end < 0 else end
        found = self._text[self._at : end]
        self._at = end + 1
        return found

    def _double_quoted(self, expansions: list[str]) -> str:
        parts = []
        while (char := self._take()) not in {"", '"'}:
            if char == "\\":
                escaped = self._take()
                parts.append("" if escaped == "\n" else escaped if escaped in '$`"\\' else f"\\{escaped}")
            else:
                parts.append(char + self._expansion(char, expansions))
        return "".join(parts)

    def _escaped(self) -> str:
        """Return the text of $'...'."""
        parts = []
        while (char := self._take()) not in {"", "'"}:
            if char == "\\":
                escaped = self._take()
                parts.append(_ESCAPES.get(escaped, escaped if escaped in "\\'\"" else f"\\{escaped}"))
            else:
                parts.append(char)
        return "".join(parts)

    def _expansion(self, char: str, expansions: list[str]) -> str:
        """Return the rest of what begins with a character and is replaced; it may have operators and blanks."""
        if char not in "$`" or (match := _EXPANSION.match(self._text, self._at - 1)) is None:
            return ""
        end = match.end()
        if match[0] in {"$(", "`"}:
            close = self._text.find(")" if match[0] == "$(" else "`", end)
            end = self._end_of_line() if close < 0 else close + 1
        expansions.append(match[0])
        rest, self._at = self._text[self._at : end], end
        return rest


def _names_of_files(written: str) -> list[str]:
    """Return a word that a shell would replace by names of files: not one with quotes, a URL or a KEY=VALUE."""
    is_pattern = re.fullmatch(r"[^\s'\"\\$=:\[]*[*?][^\s'\"\\$=:]*|~[^\s'\"\\=]*", written) is not None
    return [written] if is_pattern else []


PROGRAM: Final = programs.SPARK_SUBMIT
_OPTIONS: Final[Mapping[str, str]] = {
    "--master": "spark.master",
    "--deploy-mode": "spark.submit.deployMode",
    "--name": "spark.app.name",
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--exclude-packages": "spark.jars.excludes",
    "--repositories": "spark.jars.repositories",
    "--py-files": "spark.submit.pyFiles",
    "--files": "spark.files",
    "--archives": "spark.archives",
    "--driver-memory": "spark.driver.memory",
    "--driver-cores": "spark.driver.cores",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--driver-library-path": "spark.driver.extraLibraryPath",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--executor-memory": "spark.executor.memory",
    "--executor-cores": "spark.executor.cores",
    "--num-executors": "spark.executor.instances",
    "--queue": "spark.yarn.queue",
}
"""Options that set a property; `spark-submit` prefers them to `--conf`."""
_PROPERTIES_FILE: Final = "--properties-file"
_FILES: Final = (_PROPERTIES_FILE, "--extra-properties-file")
_NO_COUNTERPART: Final[Mapping[str, str]] = {
    "--proxy-user": "a driver cannot act for another user: remove it",
    "--principal": "Kerberos is not supported: remove it",
    "--keytab": "Kerberos is not supported: remove it",
    "--total-executor-cores": "is for standalone clusters: set executor.instances and executor.cores",
    "--remote": "Spark Connect has no counterpart: submit an application",
}
_FLAGS: Final[Mapping[str, str]] = {
    "--supervise": "set restartPolicy.type to OnFailure, to restart a driver that fails",
    "--verbose": "",
    "-v": "",
    "--load-spark-defaults": "the defaults of the machine are not read: write them into sparkConf",
}
_NOT_A_SUBMISSION: Final = ("--help", "-h", "--version", "--usage-error", "--kill", "--status")


@dataclasses.dataclass(slots=True, kw_only=True)
class _Parsed:
    """The words of a command line, sorted.

    Attributes:
        conf: Properties of `--conf`.
        options: Properties of other options.
        where: Where a property was said, for notes.
    """

    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    where: dict[str, str] = dataclasses.field(default_factory=dict)
    main_class: str | None = None
    files: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    words: list[str] = dataclasses.field(default_factory=list)


def convert_text(text: str, *, read: Callable[[str], str]) -> Iterator[Converted]:
    """Convert each command line of a file."""
    for command in commands(text):
        words = [word.text for word in command.words]
        source = f"line {command.line}"
        at = programs.find(words)
        if at is not None and programs.is_spark_submit(words[at]):
            draft = Draft(source)
            try:
                _check_shell(draft, command, command.words[at + 1 :])
            except Unconvertible as why:
                yield draft.refuse(why)
            else:
                found = convert(words, source=source, read=read)
                yield dataclasses.replace(found, notes=(*draft.notes, *found.notes))
        elif command.is_open and programs.SPARK_LINE.search(command.source):
            yield Draft(source).refuse(_OPEN)


def convert(
    words: Sequence[str], *, source: str, read: Callable[[str], str], carried: Carried | None = None
) -> Converted:
    """Convert one command line.

    Args:
        words: With `spark-submit` among them, or from its first option.
        source: For notes.
        read: Returns the text of a file that `--properties-file` names.
        carried: Takes files of this machine along.
    """
    draft = Draft(source, carried=carried)
    try:
        parsed = _parse(draft, _after_program(draft, words))
        return _application(draft, parsed, read)
    except Unconvertible as why:
        return draft.refuse(why)


def _application(draft: Draft, parsed: _Parsed, read: Callable[[str], str]) -> Converted:
    if not parsed.words:
        raise Unconvertible(PROGRAM, "has no application: name a Python file or a jar")
    file, *arguments = parsed.words
    given = {**_from_files(parsed.files, read), **parsed.conf, **parsed.options}
    left = Properties(draft, given, lambda key: parsed.where.get(key, key))
    program(draft, "application", file, main_class=parsed.main_class)
    draft.metadata["name"] = pod_fields.object_name(re.sub(r"\.\w+$", "", posixpath.basename(file)))
    left.convert_pods()
    draft.put("mainApplicationFile", pod_fields.main_file(draft, "application", file))
    if arguments:
        draft.put("arguments", arguments)
    left.convert_rest()
    if draft.carried is not None and draft.carried.files:
        name = draft.carried.config_map_name(draft.metadata["name"])
        volume = {"name": CARRIED_VOLUME, "mountPath": CARRIED_PATH, "configMapName": name, "readOnly": True}
        draft.extend("volumes", [volume])
    return draft.finish()


def _from_files(paths: Mapping[str, Sequence[str]], read: Callable[[str], str]) -> dict[str, str]:
    """Return the properties of files: of the last --properties-file, then of the others, of which each adds to it."""
    found: dict[str, str] = {}
    for option in _FILES:
        given = paths.get(option, ())
        for path in given[-1:] if option == _PROPERTIES_FILE else given:
            found |= _from_file(option, path, read)
    return found


def _from_file(option: str, path: str, read: Callable[[str], str]) -> dict[str, str]:
    try:
        return {key: value.strip() for key, value in javaproperties.loads(read(path)).items()}  # Spark strips them
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise Unconvertible(option, f"{path} cannot be read ({reason}): correct the path") from error


def _after_program(draft: Draft, words: Sequence[str]) -> list[str]:
    """Return the words after `spark-submit`; it may be left out before options."""
    if words and words[0].startswith("-"):
        return list(words)
    at = programs.find(words)
    if at is None or not programs.is_spark_submit(words[at]):
        raise Unconvertible(PROGRAM, "is not in the command line: write it first")
    programs.note_before(draft, words[:at])
    return list(words[at + 1 :])


def _parse(draft: Draft, words: list[str]) -> _Parsed:
    parsed = _Parsed()
    left = list(reversed(words))
    while left:
        word = left.pop()
        option, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not option.startswith("-"):
            parsed.words = [word, *reversed(left)]
            break
        if option in _NOT_A_SUBMISSION:
            raise Unconvertible(option, "is no submission: convert only command lines that run an application")
        if option in _FLAGS:
            if _FLAGS[option]:
                draft.note(option, _FLAGS[option])
            continue
        if equals and not value:
            raise Unconvertible(option, "has no value: write one after the equals sign")
        if not equals:
            if not left:
                raise Unconvertible(option, "has no value: write one after it")
            value = left.pop()
        _take(draft, parsed, option, value)
    return parsed


def _take(draft: Draft, parsed: _Parsed, option: str, value: str) -> None:
    if option in {"--conf", "-c"}:
        key, equals, text = value.partition("=")
        if not equals:
            raise Unconvertible(option, f"{value} is no property: write KEY=VALUE")
        parsed.conf[key] = text
        parsed.where.setdefault(key, f"--conf {key}")
    elif option in _OPTIONS:
        parsed.options[_OPTIONS[option]] = value
        parsed.where[_OPTIONS[option]] = option
    elif option == "--class":
        parsed.main_class = value
    elif option in _FILES:
        parsed.files.setdefault(option, []).append(value)
    elif option in _NO_COUNTERPART:
        draft.note(option, _NO_COUNTERPART[option])
    else:
        raise Unconvertible(option, "is no option of spark-submit: correct it, and put arguments after the file")


def _check_shell(draft: Draft, command: Command, words: Sequence[Word]) -> None:
    """Note what only a shell knows, and refuse what only a shell can do."""
    if command.is_open:
        raise _OPEN
    if command.operator is not None:
        raise Unconvertible(command.operator, "only the command itself can be converted: remove operators of the shell")
    for expansion in dict.fromkeys(expansion for word in words for expansion in word.expansions):
        draft.note(expansion, "is not replaced, because no shell reads the line: write its value")


_OPEN: Final = Unconvertible("quotes", "No closing quotation: close them")
