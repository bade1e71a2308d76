"""The file of a recording: lines of JSON that are only ever appended, so that a stop loses the last one at most."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from boathouse_cli import record_lines
from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DECODER = msgspec.json.Decoder(record_lines.Line)
_ENCODER = msgspec.json.Encoder()
_LONGEST_LINE = 1 << 20


def read(path: Path) -> Iterator[tuple[record_lines.Line, int]]:
    """Yield the lines of a recording with their lengths in bytes. Half a line, which a kill leaves, is skipped.

    Raises:
        CommandError: The file cannot be read, or is no recording.
    """
    try:
        with path.open("rb") as opened:
            is_recording, is_text = False, False
            while written := opened.readline(_LONGEST_LINE):
                line, is_text = _decoded(written), is_text or written.endswith(b"\n")
                if line is None:
                    continue
                is_recording |= isinstance(line, record_lines.Begin) and line.format == record_lines.FORMAT
                if not is_recording:
                    break
                yield line, len(written)
            if is_text and not is_recording:
                raise CommandError(f"{path} is no recording of `boathouse record`: choose another file", ExitCode.USAGE)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", ExitCode.USAGE) from error


def _decoded(written: bytes) -> record_lines.Line | None:
    try:
        found: record_lines.Line = _DECODER.decode(written)
    except msgspec.DecodeError:
        return None
    return found


class Appender:
    """Appends lines.

    Attributes:
        size_bytes: Of the file.
    """

    def __init__(self, opened: BinaryIO, path: Path) -> None:
        self._opened, self._path = opened, path
        self.size_bytes = opened.seek(0, os.SEEK_END)

    def write(self, line: record_lines.Line) -> int:
        """Append a line; return its length in bytes.

        Raises:
            CommandError: It cannot be written.
        """
        written = _ENCODER.encode(line) + b"\n"
        self._append(written)
        return len(written)

    def end_half_line(self) -> None:
        """End a line of which a kill left the first half."""
        if self.size_bytes:
            self._opened.seek(-1, os.SEEK_END)
            if self._opened.read(1) != b"\n":
                self._append(b"\n")

    def sync(self) -> None:
        """Let what was appended survive a crash of the machine."""
        os.fsync(self._opened.fileno())

    def _append(self, written: bytes) -> None:
        left = memoryview(written)
        try:
            while left:
                left = left[self._opened.write(left) :]
        except OSError as error:
            raise CommandError(
                f"{self._path} cannot be written: {error.strerror}: make room, and run the same command again",
                ExitCode.USAGE,
            ) from error
        self.size_bytes += len(written)


@contextlib.contextmanager
def appending(path: Path) -> Iterator[Appender]:
    """Open a recording to append, and keep others from doing the same. Only its owner may read a new file.

    Raises:
        CommandError: It cannot be opened, or another process records into it.
    """
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandError(
            f"{path} cannot be written: {error.strerror}: choose another file", ExitCode.USAGE
        ) from error
    with os.fdopen(number, "r+b", buffering=0) as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError(
                f"another process records into {path}: end it, or choose another file", ExitCode.USAGE
            ) from error
        yield Appender(opened, path)
