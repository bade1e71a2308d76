"""Read and write the HDFS of a cluster with hdfs-native, without a JVM.

The module is imported by every task, hdfs-native only by tasks with an hdfs:// URL. It needs 6 MiB and three threads.

A file gets its final name only when its content is complete: it is written under another name and renamed. HDFS shows a
file that is created under its final name empty until its writer closes it, and for ever if the writer dies.
"""

import contextlib
import functools
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from boathouse_task.contract import HdfsAddress, Reason
from boathouse_task.errors import TaskError
from boathouse_task.locations import Location, Source, StoredObject

if TYPE_CHECKING:
    import hdfs_native

T = TypeVar("T")

USER = "hadoop"
"""The user of a cluster's daemons and of its jobs."""
_USER_VARIABLE = "HADOOP_USER_NAME"
_STAGED = "._boathouse-"
"""Prefix of the names of incomplete files, which Hadoop's input formats skip."""
_CONNECT_ATTEMPTS = 3
"""Attempts of hdfs-native to reach the NameNode, in about 5 s; this module repeats the request for `retry_s`."""
_FIRST_DELAY_S = 0.5
_LONGEST_DELAY_S = 10.0
_SMALL_BYTES = 1024 * 1024
"""Size of files that are kept in memory until they are written."""

_JAVA_ERROR = re.compile(r'RPCError\("([\w.$]+)", "((?:[^"\\]|\\.)*)')
_FINAL = (
    "AccessControlException",
    "ParentNotDirectoryException",
    "PathIsNotEmptyDirectoryException",
    "InvalidPathException",
    "NSQuotaExceededException",
    "DSQuotaExceededException",
)
"""User errors, which a repeated request would get again."""
_HINTS = {
    "AccessControlException": "access is denied: check the owner and the permissions of the path",
    "SafeModeException": "the NameNode is in safe mode: see the conditions of the cluster",
    "StandbyException": "the NameNode is a standby",
    "NSQuotaExceededException": "the quota of names of its folder is used up",
    "DSQuotaExceededException": "the quota of space of its folder is used up",
    "could only be written to": "no DataNode has room for another block: see the cluster's use of HDFS",
    "All DataNodes failed": "no DataNode with a replica answers: see the cluster's missing blocks",
    "failed to lookup": "the host name of the NameNode or of a DataNode does not resolve: see the cluster's pods",
    "Connection refused": "the NameNode or a DataNode refuses connections: see the cluster's pods",
}
_FULL = ("could only be written to", "NSQuotaExceededException", "DSQuotaExceededException")


class HdfsStore:
    """The HDFS of a cluster, with the methods of `ObjectStore`. It repeats a request for `retry_s`.

    `authority` is the cluster's name; or, without `address`, HOST:PORT of a NameNode. Raises TaskError: InvalidURL if
    there is no such cluster.
    """

    def __init__(
        self,
        authority: str,
        address: HdfsAddress | None,
        variables: Mapping[str, str],
        retry_s: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if address is None and ":" not in authority:
            problem = f"hdfs://{authority}/ names no cluster of this namespace: check the URL and the MRClusters"
            raise TaskError(Reason.INVALID_URL, problem)
        self._client = _client(address.name_node if address is not None else authority, user(variables))
        self._retry_s, self._sleep, self._monotonic = retry_s, sleep, monotonic
        self._readers = threading.local()

    def find(self, location: Location) -> StoredObject:
        """Return the file; a folder is no file."""
        info = self._retry(lambda: self._client.get_file_info(f"/{location.path}"))
        if info.isdir:
            raise FileNotFoundError(location.path)
        return _stored(location, info)

    def read(self, path: str) -> bytes:
        """Return a small file's content."""
        return self._retry(lambda: bytes(self._client.read(f"/{path}").read()))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a part of a file, from the closest DataNode that answers."""

        def read() -> bytes:
            reader = self._reader(path)
            try:
                there = min(length, len(reader) - offset)  # hdfs-native panics if a range is not within the file
                return bytes(reader.read_range(offset, there)) if there > 0 else b""
            except (OSError, RuntimeError):
                self._readers.last = None  # its blocks may have moved
                raise

        return self._retry(read)

    def listing(self, folder: Location, is_recursive: bool) -> Iterator[StoredObject]:
        """Yield the files in a folder, at any depth if it is recursive; an unknown folder is empty."""
        with _converted():
            try:
                for info in self._client.list_status(f"/{folder.path}", recursive=is_recursive):
                    if not info.isdir and info.path.strip("/") != folder.path:  # a file's list is the file
                        yield _stored(folder.at(info.path), info)
            except FileNotFoundError:
                return

    def create(self, path: str, content: bytes) -> bool:
        """Create the file with its content; return False if it exists."""
        staged = self._retry(lambda: self._put(path, [content]))
        try:
            self._retry(lambda: self._client.rename(f"/{staged}", f"/{path}", overwrite=False))
        except FileExistsError:
            self._discard(staged)
            return False
        except FileNotFoundError:  # the response to an earlier request was lost, or somebody has deleted the folder
            if self.read(path) != content:
                raise
        except OSError:
            self._discard(staged)
            raise
        return True

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, replacing an existing one."""
        self._publish(self._retry(lambda: self._put(path, [content])), path)

    def upload(self, path: str, source: Source) -> None:
        """Write a file of any size as its content arrives. Only a small one is written again after an error."""
        content = source.small(_SMALL_BYTES)
        if content is not None:
            self.write(path, content)
            return
        with _converted():
            staged = self._put(path, source)
        self._publish(staged, path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing an existing one."""
        self._retry(lambda: self._client.rename(f"/{source}", f"/{target}", overwrite=True))

    def delete(self, paths: list[str]) -> None:
        """Delete files; missing ones are ignored."""
        for path in paths:
            self._retry(functools.partial(self._client.delete, f"/{path}"))

    def remove_empty_folders(self, folder: str) -> None:
        """Remove a folder's empty folders and then itself."""
        with _converted():
            try:
                below = [info.path for info in self._client.list_status(f"/{folder}", recursive=True) if info.isdir]
            except FileNotFoundError:
                return
        for path in [*sorted(below, key=len, reverse=True), f"/{folder}"]:
            with contextlib.suppress(OSError), _converted():
                self._client.delete(path)

    def _reader(self, path: str) -> "hdfs_native.FileReader":
        """Return the thread's reader of a file, which knows the places of its blocks."""
        last: tuple[str, hdfs_native.FileReader] | None = getattr(self._readers, "last", None)
        if last is None or last[0] != path:
            last = self._readers.last = path, self._client.read(f"/{path}")
        return last[1]

    def _put(self, path: str, chunks: Iterable[bytes]) -> str:
        """Write a file with a new name in the folder of `path`; return its path."""
        folder = path.rpartition("/")[0]
        staged = f"{folder}/{_STAGED}{secrets.token_hex(8)}".lstrip("/")
        writer = self._client.create(f"/{staged}")
        try:
            for chunk in chunks:
                writer.write(chunk)
            writer.close()
        except BaseException:
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()
            self._discard(staged)
            raise
        return staged

    def _publish(self, staged: str, path: str) -> None:
        """Give a complete file its name, replacing an existing one."""
        try:
            self.rename(staged, path)
        except FileNotFoundError:  # the response to an earlier request was lost, unless this fails too
            self._retry(lambda: self._client.get_file_info(f"/{path}"))
        except OSError:
            self._discard(staged)
            raise

    def _discard(self, staged: str) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._client.delete(f"/{staged}")

    def _retry(self, request: Callable[[], T]) -> T:
        """Repeat a request that may succeed later, such as during safe mode or after the loss of a DataNode."""
        deadline_s, delay_s = self._monotonic() + self._retry_s, _FIRST_DELAY_S
        while True:
            try:
                with _converted():
                    return request()
            except (FileNotFoundError, FileExistsError, PermissionError):
                raise
            except OSError as error:
                if self._monotonic() + delay_s > deadline_s or any(word in str(error) for word in _FINAL):
                    raise
            self._sleep(delay_s)
            delay_s = min(_LONGEST_DELAY_S, 2 * delay_s)


def explain(error: Exception, action: str, url: str) -> TaskError:
    """Return an exception of a store as an error: what, where, what to do."""
    text = str(error)
    hint = next((hint for word, hint in _HINTS.items() if word in text), "HDFS refuses it")
    other = Reason.OUT_OF_DISK if any(word in text for word in _FULL) else Reason.STORAGE_ERROR
    reason = Reason.ACCESS_DENIED if isinstance(error, PermissionError) else other
    is_final = any(word in text for word in _FINAL)
    return TaskError(reason, f"cannot {action} {url}: {hint} ({text})", user_error=is_final)


def user(variables: Mapping[str, str]) -> str:
    """Return the name under which a task reads and writes."""
    return variables.get(_USER_VARIABLE) or USER


def _client(address: str, name: str) -> "hdfs_native.Client":
    """Return a client of the NameNode at HOST:PORT.

    The nameservice makes hdfs-native repeat requests, as it does for two NameNodes.
    """
    import hdfs_native

    os.environ[_USER_VARIABLE] = name  # the only place from which hdfs-native takes it
    return hdfs_native.Client(
        "hdfs://cluster",
        {
            "dfs.nameservices": "cluster",
            "dfs.ha.namenodes.cluster": "nn",
            "dfs.namenode.rpc-address.cluster.nn": address,
            "dfs.client.failover.max.attempts": str(_CONNECT_ATTEMPTS),
            "dfs.client.use.datanode.hostname": "true",
        },
    )


def _stored(location: Location, info: "hdfs_native.FileStatus") -> StoredObject:
    return StoredObject(location=location, size_bytes=info.length, block_bytes=info.blocksize or 0)


@contextlib.contextmanager
def _converted() -> Iterator[None]:
    """Raise hdfs-native's RuntimeErrors as OSErrors with the Java exception and its message, without its stack."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        if match := _JAVA_ERROR.match(text):
            text = f"{match[1].rpartition('.')[2]}: {match[2].partition(chr(92) + 'n')[0]}"
        kind = PermissionError if "AccessControlException" in text else OSError
        raise kind(text[:300]) from None
