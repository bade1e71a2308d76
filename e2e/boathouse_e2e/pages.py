"""Commands and manifests of the pages that users follow, for the tests that run them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

import yaml

from boathouse_e2e.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PAGES: Final = ("README.md", *(f"docs/{name}.md" for name in ("getting-started", "sparkapp", "mrjob", "mrcluster")))
"""Every command of these is run by a test."""
NAMESPACE: Final = "analytics"
"""The namespace that the pages use."""
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]+)`")
_CONTINUED: Final = re.compile(r"\\\n\s*")
_COMMENT: Final = re.compile(r"^# (.*)$", re.MULTILINE)
_OF_EXAMPLE: Final = re.compile(r"(?:^|: ) {1,2}((?:kubectl|boathouse) .*)$", re.MULTILINE)
_PROGRAMS: Final = ("boathouse ", "kubectl ", "make ")


def text_of(page: str, heading: str | None = None) -> str:
    """Return a page, or the section with a heading up to the next heading.

    Raises:
        ValueError: The page has no such heading.
    """
    text = (REPOSITORY / page).read_text()
    if heading is None:
        return text
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", _without_comments(text), re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{page} has no section {heading!r}")
    return found[1]


def blocks(text: str, language: str) -> list[str]:
    """Return the blocks of code in a language."""
    return [body for of, body in _BLOCK.findall(text) if of == language]


def console_lines(text: str) -> list[str]:
    """Return the lines that users enter into a shell, each with its continuation, without the prompt."""
    joined = (_CONTINUED.sub("", block) for block in blocks(text, "console"))
    return [line.removeprefix("$ ") for block in joined for line in block.splitlines() if line.startswith("$ ")]


def inline_lines(text: str) -> list[str]:
    """Return the command lines in running text and tables; the names of programs and commands alone are none."""
    found = _CODE.findall(_BLOCK.sub("", text))
    return [line for line in found if line.startswith(_PROGRAMS) and len(line.split()) > 1]


def comment_lines(example: Path) -> list[str]:
    """Return the commands in the comments of an example."""
    comments = "\n".join(_COMMENT.findall(example.read_text()))
    return _OF_EXAMPLE.findall(_CONTINUED.sub("", comments))


def commands(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of each simple command of shell lines, without redirections and assignments."""
    for line in lines:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        is_target = False
        for word in [*lexer, ";"]:
            if set(word) <= set("();|&"):
                if words and not words[-1].endswith("=$"):  # NAME=$(...)
                    yield words
                words = []
            elif word in {"<", ">"}:
                is_target = True
            elif is_target:
                is_target = False
            elif word not in {"{", "}"}:
                words.append(word)


def script(lines: Iterable[str], namespace: str, beginning: str) -> str:
    """Return lines that users enter as a script of bash for another namespace, which ends at the first failure.

    Args:
        lines: as `console_lines` returns them.
        namespace: takes the place of the namespace of the pages.
        beginning: functions in the place of programs that are not to be run.
    """
    entered = (line.replace(NAMESPACE, namespace) for line in lines)
    return "\n".join(["set -eu -o pipefail", beginning, *entered])


def manifests(text: str) -> list[dict[str, Any]]:
    """Return the objects in the blocks of YAML of a page, also those of which it shows a part."""
    return [found for block in blocks(text, "yaml") for found in yaml.safe_load_all(block)]


def _without_comments(text: str) -> str:
    """Return a page whose blocks of code have no lines that look like headings."""
    return _BLOCK.sub(lambda block: block[0].replace("\n#", "\n #"), text)
