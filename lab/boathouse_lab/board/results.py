"""The file of results, one a line: what is in it is not simulated again."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boathouse_policies
import boathouse_sim
from boathouse_lab import board
from boathouse_lab.board.cases import Case, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIGEST_BYTES: Final = 8
_READERS: Final = frozenset({"page.py", "plan.py", "results.py", "summary.py"})
"""Modules of the board that results do not rest on."""


@functools.cache
def sources() -> str:
    """Return a digest of the code that results rest on: those of other code are of no use."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for package in (boathouse_policies, boathouse_sim, board):
        folder = Path(package.__path__[0])
        for file in sorted(folder.rglob("*.py")):
            if package is board and file.name in _READERS:
                continue
            found.update(file.relative_to(folder).as_posix().encode())
            found.update(file.read_bytes())
    return found.hexdigest()


class Results:
    """Results by case.

    Args:
        path: The file; made with its first result. Lines of other code, and a last line that was cut off, are ignored.
        code: The digest that its lines must have.
    """

    def __init__(self, path: Path, code: str) -> None:
        self._path, self._code = path, code
        self.found: dict[Case, Result] = {}
        self._is_cut_off = False
        if path.exists():
            text = path.read_text(encoding="utf-8")
            self._is_cut_off = bool(text) and not text.endswith("\n")
            for line in text.splitlines():
                self._read(line)

    def _read(self, line: str) -> None:
        try:
            values: Mapping[str, Any] = json.loads(line)
            if values["code"] == self._code:
                self.found[Case(**values["case"])] = Result(**values["result"])
        except (json.JSONDecodeError, KeyError, TypeError):
            return

    def add(self, case: Case, result: Result) -> None:
        """Add a result, and write it down.

        Raises:
            OSError: The file cannot be written.
        """
        self.found[case] = result
        line = {"code": self._code, "case": dataclasses.asdict(case), "result": dataclasses.asdict(result)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if self._is_cut_off else "") + json.dumps(line) + "\n")
        self._is_cut_off = False
