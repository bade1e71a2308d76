"""Globs of Hadoop as those of an MRJob, which have no escapes."""

from __future__ import annotations

import re
from typing import Final

from boathouse_cli.conversion.draft import Unconvertible

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_CLASS: Final = re.compile(r"(?<!\\)\[[^\]]*\]")
_UNPRINTED: Final = "{},\\"


def without_escapes(option: str, path: str) -> str:
    r"""Return a path without backslashes: `\*` is `[*]`, and before other characters they say nothing.

    Raises:
        Unconvertible: A character cannot be said in another way.
    """
    if "\\" not in path:
        return path
    if _ESCAPED.sub("", path).endswith("\\"):
        raise Unconvertible(option, f"{path} ends with a backslash, which Hadoop refuses: remove it")

    def said(match: re.Match[str]) -> str:
        char = match[1]
        if char in _UNPRINTED:
            raise Unconvertible(option, f"{path}: an MRJob cannot escape {char}: write ? instead, or rename the files")
        return f"[{char}]" if char in "*?[" else char

    if any("\\" in match for match in _CLASS.findall(path)):
        raise Unconvertible(option, f"{path}: an MRJob has no escapes in brackets: write the characters without them")
    return _ESCAPED.sub(said, path)
