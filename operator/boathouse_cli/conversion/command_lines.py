"""Command lines of `spark-submit` as SparkApps, the programs of command lines, and the words of a shell's script."""

import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import javaproperties

from boathouse_cli.conversion import pod_fields
from boathouse_cli.conversion.draft import CARRIED_PATH, CARRIED_VOLUME, Carried, Converted, Draft, Unconvertible
from boathouse_cli.conversion.properties import Properties, program

PROGRAM: Final = "spark-submit"
_SPARK_SUBMIT: Final = r"spark[23]?-submit(2?\.cmd|\.sh)?"
"""Distributions that had two versions of Spark call it spark2-submit and spark3-submit."""
SPARK_LINE: Final = re.compile(rf"""^(?!\s*\#)(?:.*[\s/"'])?{_SPARK_SUBMIT}(?=["'\s]|$)""", re.MULTILINE)
"""A line of a script that may run it."""


def is_spark_submit(word: str) -> bool:
    """Return whether a word names spark-submit, with or without a folder."""
    return re.fullmatch(_SPARK_SUBMIT, posixpath.basename(word)) is not None


def is_hadoop(word: str) -> bool:
    """Return whether a word names a program of Hadoop that runs jobs."""
    return posixpath.basename(word) in {"hadoop", "yarn", "mapred"}


def find(words: Sequence[str]) -> int | None:
    """Return where the first program is that is converted; it follows variables and programs that start another."""
    return next((n for n, word in enumerate(words) if is_spark_submit(word) or is_hadoop(word)), None)


def note_before(draft: Draft, words: Sequence[str]) -> None:
    """Note what stands before the program and has no effect: variables, and programs that start another."""
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and name.isidentifier():
            if name not in {"SPARK_HOME", "HADOOP_HOME", "JAVA_HOME", "PATH"}:
                draft.note(name, "variables of the submitter have no effect: set env, if the program needs it")
        elif posixpath.basename(word) not in ("command", "env", "exec", "nohup", "time"):
            draft.note(word, "has no effect, because no machine runs the line: remove it")


_EXPANSION: Final = r"\$\((?:[^)]*\)|[^\n]*)|`(?:[^`]*`|[^\n]*)|\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}\n]*\}?|[0-9@*#?$!-])"
"""What a shell replaces, which may have operators and blanks."""
_PIECE: Final = re.compile(
    rf"""\\(?P<escaped>.|\Z)|(?:'(?P<single>[^']*)|\$'(?P<ansi>(?:\\.|[^'\\])*)"""
    rf"""|"(?P<double>(?:\\.|{_EXPANSION}|[^"\\])*))(?P<close>['"]|\\?\Z)"""
    rf"""|(?P<expansion>{_EXPANSION})|[^\s\\'"|;&<>()]""",
    re.DOTALL,
)
_IN_DOUBLE_QUOTES: Final = re.compile(rf"\\(?P<escaped>.)|(?P<expansion>{_EXPANSION})", re.DOTALL)
_NAMES_OF_FILES: Final = re.compile(r"[^\s'\"\\$=:\[]*[*?][^\s'\"\\$=:]*|~[^\s'\"\\=]*")
"""What a shell would replace by names of files: no word with quotes, no URL, and no KEY=VALUE."""
_TOKEN: Final = re.compile(
    rf"(?P<blank>(?:[^\S\n]|\\\n)+)|(?P<comment>#[^\n]*)|(?P<operator>[|;&<>()])|(?P<end>\n|\Z)"
    rf"|(?P<word>(?:{_PIECE.pattern})+)",
    re.DOTALL,
)
_ESCAPES: Final = dict(zip("ntrabfve", "\n\t\r\a\b\f\v\x1b", strict=True)) | {mark: mark for mark in "\\'\""}
"""Of $'...'."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word without quotes and escapes, and what of it a shell would replace: variables, output, names of files."""

    text: str
    expansions: tuple[str, ...] = ()
    is_open: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line of a script, continued by backslashes and quotes, and the first operator of the shell in it."""

    line: int
    source: str
    words: tuple[Word, ...]
    operator: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether a quote is not closed."""
        return any(word.is_open for word in self.words)


def commands(text: str) -> Iterator[Command]:
    """Yield the commands of a script; comments and empty lines are left out."""
    text = text.replace("\r\n", "\n")
    words, operator, start = list[Word](), None, 0
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "operator":
                operator = operator or token[0]
            case "word":
                start = start if words else token.start()
                words.append(_word(token["word"]))
            case "end" if words:
                line = text.count("\n", 0, start) + 1
                yield Command(line=line, source=text[start : token.end()], words=tuple(words), operator=operator)
                words, operator = [], None


def _word(written: str) -> Word:
    expansions, is_open = list[str](), False

    def expanded(text: str) -> str:
        expansions.append(text[:2] if text.startswith("$(") else text[:1] if text.startswith("`") else text)
        return text

    def in_double_quotes(match: re.Match[str]) -> str:
        if match["expansion"]:
            return expanded(match[0])
        return "" if match["escaped"] == "\n" else match["escaped"] if match["escaped"] in '$`"\\' else match[0]

    def read(piece: re.Match[str]) -> str:
        nonlocal is_open
        is_open |= piece["escaped"] == "" or (piece["close"] is not None and piece["close"] not in {"'", '"'})
        if piece["escaped"] is not None:
            return "" if piece["escaped"] == "\n" else piece["escaped"]
        if piece["ansi"] is not None:
            return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), piece["ansi"], flags=re.DOTALL)
        if piece["double"] is not None:
            return _IN_DOUBLE_QUOTES.sub(in_double_quotes, piece["double"])
        if piece["single"] is not None:
            return piece["single"]
        return expanded(piece[0]) if piece["expansion"] else piece[0]

    text = _PIECE.sub(read, written)
    expansions += [written] if _NAMES_OF_FILES.fullmatch(written) else []
    return Word(text=text, expansions=tuple(expansions), is_open=is_open)


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
    """The words of a command line: properties of `--conf` and of other options, and where they were said, for notes."""

    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    where: dict[str, str] = dataclasses.field(default_factory=dict)
    main_class: str | None = None
    files: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    words: list[str] = dataclasses.field(default_factory=list)


def convert_text(text: str, *, read: Callable[[str], str]) -> Iterator[Converted]:
    """Convert each command line of a file."""
    for command in commands(text):
        draft, words = Draft(f"line {command.line}"), [word.text for word in command.words]
        at = find(words)
        if at is not None and is_spark_submit(words[at]):
            try:
                _check_shell(draft, command, command.words[at + 1 :])
                yield _application(draft, words, read)
            except Unconvertible as why:
                yield draft.refuse(why)
        elif command.is_open and SPARK_LINE.search(command.source):
            yield draft.refuse(_OPEN)


def convert(
    words: Sequence[str], *, source: str, read: Callable[[str], str], carried: Carried | None = None
) -> Converted:
    """Convert one line, with `spark-submit` among its words or from its first option; `read` reads properties files."""
    draft = Draft(source, carried=carried)
    try:
        return _application(draft, words, read)
    except Unconvertible as why:
        return draft.refuse(why)


def _application(draft: Draft, words: Sequence[str], read: Callable[[str], str]) -> Converted:
    parsed = _parse(draft, _after_program(draft, words))
    if not parsed.words:
        raise Unconvertible(PROGRAM, "has no application: name a Python file or a jar")
    file, *arguments = parsed.words
    given = _from_files(parsed.files, read) | parsed.conf | parsed.options
    left = Properties(draft, given, lambda key: parsed.where.get(key, key))
    program(draft, "application", file, main_class=parsed.main_class)
    draft.metadata["name"] = pod_fields.object_name(re.sub(r"\.\w+$", "", posixpath.basename(file)))
    left.convert_pods()
    draft.put("mainApplicationFile", pod_fields.main_file(draft, "application", file))
    if arguments:
        draft.put("arguments", arguments)
    left.convert_rest()
    if draft.carried is not None and draft.carried.files:
        volume = {"name": CARRIED_VOLUME, "mountPath": CARRIED_PATH, "readOnly": True}
        draft.extend("volumes", [volume | {"configMapName": draft.carried.config_map_name(draft.metadata["name"])}])
    return draft.finish()


def _from_files(paths: Mapping[str, list[str]], read: Callable[[str], str]) -> dict[str, str]:
    """Return the properties of files: of the last --properties-file, then of the others, of which each adds to it."""
    found: dict[str, str] = {}
    for option in _FILES:
        for path in paths.get(option, [])[-1 if option == _PROPERTIES_FILE else 0 :]:
            try:
                given = javaproperties.loads(read(path))
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise Unconvertible(option, f"{path} cannot be read ({reason}): correct the path") from error
            found |= {key: value.strip() for key, value in given.items()}  # as Spark does
    return found


def _after_program(draft: Draft, words: Sequence[str]) -> list[str]:
    """Return the words after `spark-submit`; it may be left out before options."""
    if words and words[0].startswith("-"):
        return list(words)
    at = find(words)
    if at is None or not is_spark_submit(words[at]):
        raise Unconvertible(PROGRAM, "is not in the command line: write it first")
    note_before(draft, words[:at])
    return list(words[at + 1 :])


def _parse(draft: Draft, words: list[str]) -> _Parsed:
    parsed, left = _Parsed(), list(reversed(words))
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
