"""An HDFS in memory behind hdfs-native's names, and its WebHDFS."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from tests.builders.task_servers import Request, http_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLOCK_BYTES = 1024


def rpc_error(name: str, message: str = "no") -> RuntimeError:
    """Return an error of the NameNode as hdfs-native raises it."""
    return RuntimeError(f'RPCError("org.apache.hadoop.{name}", "{message}\\n\\tat org.apache.hadoop.Secret(X.java:1)")')


@dataclasses.dataclass(frozen=True)
class FileStatus:
    path: str
    length: int
    isdir: bool
    blocksize: int


class Writer:
    """A file is there, and empty, from its creation."""

    def __init__(self, node: NameNode, path: str) -> None:
        self._node, self._path, self._content = node, path, b""
        node.files[path] = b""

    def write(self, chunk: bytes) -> int:
        self._content += chunk
        return len(chunk)

    def close(self) -> None:
        self._node.record("close", self._path)
        if self._path in self._node.files:
            self._node.files[self._path] = self._content


class Reader:
    def __init__(self, node: NameNode, content: bytes) -> None:
        self._node, self._content = node, content

    def __len__(self) -> int:
        return len(self._content)

    def read(self) -> bytes:
        return self._content

    def read_range(self, offset: int, length: int) -> bytes:
        self._node.record("read_range", f"{offset}+{length}")
        assert offset + length <= len(self._content), "hdfs-native would panic"
        return self._content[offset : offset + length]


class NameNode:
    """Responds as the recorded NameNode does.

    Attributes:
        files: Contents by path.
        calls: Names and paths of all requests.
        failures: Exceptions of the next requests by name.
        lost: Requests that are carried out, and whose response is lost.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.failures: dict[str, list[Exception]] = {}
        self.lost: dict[str, int] = {}
        self._lock = threading.RLock()

    def record(self, name: str, path: str) -> None:
        """Record a request; fail it if the test wants so."""
        self.calls.append((name, path))
        if self.failures.get(name):
            raise self.failures[name].pop(0)

    def get_file_info(self, path: str) -> FileStatus:
        self.record("info", path)
        found = self._info(path)
        if found is None:
            raise FileNotFoundError(path)
        return found

    def list_status(self, path: str, recursive: bool = False) -> Iterator[FileStatus]:
        self.record("list", path)
        if self._info(path) is None:
            raise FileNotFoundError(path)
        if path in self.files:
            return iter([self.get_file_info(path)])
        below = [
            entry_path
            for entry_path in sorted((*self.files, *self._folders()))
            if entry_path.startswith(path.rstrip("/") + "/")
        ]
        depth = path.rstrip("/").count("/") + 1
        return iter(
            [self.get_file_info(entry_path) for entry_path in below if recursive or entry_path.count("/") == depth]
        )

    def read(self, path: str) -> Reader:
        self.record("read", path)
        if path not in self.files:
            raise FileNotFoundError(path)
        return Reader(self, self.files[path])

    def create(self, path: str) -> Writer:
        with self._lock:
            self.record("create", path)
            if path in self.files:
                raise FileExistsError(path)
            self.folders |= set(_parents(path))
            return Writer(self, path)

    def rename(self, source: str, target: str, overwrite: bool = False) -> None:
        with self._lock:
            self.record("rename", target)
            if source not in self.files:
                raise FileNotFoundError(source)
            if target in self.files and not overwrite:
                raise FileExistsError(target)
            self.files[target] = self.files.pop(source)
            if self.lost.get("rename"):
                self.lost["rename"] -= 1
                raise OSError("Connection reset by peer")

    def delete(self, path: str) -> bool:
        with self._lock:
            self.record("delete", path)
            if any(entry_path.startswith(path + "/") for entry_path in (*self.files, *self._folders())):
                raise rpc_error("fs.PathIsNotEmptyDirectoryException")
            was_there = self._info(path) is not None
            self.files.pop(path, None)
            self.folders.discard(path)
            return was_there

    def _folders(self) -> set[str]:
        return self.folders | {parent for path in self.files for parent in _parents(path)}

    def _info(self, path: str) -> FileStatus | None:
        if path in self.files:
            return FileStatus(path, len(self.files[path]), isdir=False, blocksize=BLOCK_BYTES)
        return FileStatus(path, 0, isdir=True, blocksize=0) if path == "/" or path in self._folders() else None


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def block(offset: int, length: int, hosts: Sequence[str]) -> dict[str, object]:
    """Return a block as WebHDFS describes it, with the fields of a recorded response."""
    names = [f"10.0.0.{number}:9866" for number, _ in enumerate(hosts)]
    return {
        "topologyPaths": [f"/default-rack/{name}" for name in names],
        "corrupt": False,
        "cachedHosts": [],
        "names": names,
        "offset": offset,
        "hosts": list(hosts),
        "length": length,
        "storageTypes": ["DISK"] * len(hosts),
    }


@contextlib.contextmanager
def web_hdfs(blocks: dict[str, list[dict[str, object]]], requests: list[str] | None = None) -> Iterator[str]:
    """Serve the blocks of files, and record the paths of requests; yield HOST:PORT."""

    def respond(request: Request) -> tuple[int, bytes]:
        if requests is not None:
            requests.append(request.path)
        parts = urlsplit(request.path)
        path, query = unquote(parts.path).removeprefix("/webhdfs/v1"), parse_qs(parts.query)
        start, length = int(query["offset"][0]), int(query["length"][0])
        found = [
            block
            for block in blocks.get(path, [])
            if block["offset"] < start + length and block["offset"] + block["length"] > start
        ]
        body = json.dumps({"BlockLocations": {"BlockLocation": found}}).encode()
        return (200 if path in blocks else 404), body

    with http_server(respond) as port:
        yield f"127.0.0.1:{port}"
