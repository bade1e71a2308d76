"""Commands of a shell's script: their words as the shell would pass them, and what only the shell knows."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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
