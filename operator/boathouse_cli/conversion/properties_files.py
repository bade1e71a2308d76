"""Files of Java properties, as `java.util.Properties` reads them."""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse(text: str) -> dict[str, str]:
    """Return the properties of a file.

    Raises:
        ValueError: An escape is half a character.
    """
    found = {}
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    joined = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not joined and (not line or line[0] in "#!"):
            continue
        joined += line
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        lines.append(joined)
        joined = ""
    return lines


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])

    units = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", replaced, text, flags=re.DOTALL)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")  # two of Java's characters may be one
