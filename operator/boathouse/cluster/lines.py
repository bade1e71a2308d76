"""Cuts a byte stream into lines of any length."""

from __future__ import annotations


class LineSplitter:
    """Collects chunks and gives the lines they complete; each byte is copied once, however long the line.

    Attributes:
        has_rest: Whether a line has begun that did not end.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def has_rest(self) -> bool:
        """Whether a line has begun that did not end."""
        return bool(self._rest)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that the chunk completes, without their newlines."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._rest:
            lines[0] = bytes(self._rest + lines[0])
            self._rest.clear()
        self._rest += rest
        return lines
