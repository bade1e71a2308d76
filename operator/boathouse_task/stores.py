"""Interface of a store: a bucket, the local files, or the HDFS of a cluster."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of a store.

    Attributes:
        path: its path in the store, without slashes at its ends.
        block_bytes: size of its blocks; 0 if the store has none.
        problem: what is wrong with its name, if it cannot be read under it; else "".
    """

    path: str
    size_bytes: int
    block_bytes: int = 0
    problem: str = ""


class Store(Protocol):
    """A store. Paths have no slashes at their ends; "" is the root.

    Methods raise `FileNotFoundError`, and the exceptions that `explain` of the module converts.
    """

    def find(self, path: str) -> Entry:
        """Return the file at a path."""

    def read(self, path: str) -> bytes:
        """Return a small file's content."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, or fewer at the end of the file."""

    def files(self, folder: str) -> Iterator[Entry]:
        """Yield the files below a folder at any depth, also those that cannot be read."""

    def children(self, folder: str) -> Iterator[Entry]:
        """Yield the files directly in a folder, also those that cannot be read."""

    def create(self, path: str, content: bytes) -> bool:
        """Create a file with its content in one step; return False if it exists."""

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, replacing an existing one."""

    def upload(self, path: str, source: "Source") -> None:
        """Write a file of any size in limited memory. A failure leaves no file."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing an existing one."""

    def delete(self, paths: list[str]) -> None:
        """Delete files; missing ones may raise `FileNotFoundError`."""

    def remove_empty_folders(self, folder: str) -> None:
        """Remove a folder's empty folders and then itself, if the store has real folders."""


class Source:
    """Iterator of chunks that stores its size and its own error."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.size_bytes = 0
        self.exhausted = False
        self.error: Exception | None = None

    def take(self, least_bytes: int) -> deque[bytes]:
        """Return at least so many bytes, or all there are."""
        taken: deque[bytes] = deque()
        size = 0
        for chunk in self:
            taken.append(chunk)
            size += len(chunk)
            if size >= least_bytes:
                break
        else:
            self.exhausted = True
        return taken

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._chunks:
                self.size_bytes += len(chunk)
                yield chunk
        except Exception as error:
            self.error = error
            raise
