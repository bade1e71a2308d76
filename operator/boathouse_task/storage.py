"""Access the user's storage (S3, folders, HDFS), and convert errors of its stores to reasons that say what to do."""

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping

from obstore import exceptions

from boathouse_task import hdfs, object_store
from boathouse_task.contract import HdfsAddress, Reason, S3Config
from boathouse_task.errors import NotFound, TaskError
from boathouse_task.locations import Location, Source, StoredObject

Store = object_store.ObjectStore | hdfs.HdfsStore
_S3_COPY_MAX_BYTES = 5 * 1024**3
"""Maximum size of an object for CopyObject."""


class Storage:
    """The stores that a job's URLs name. `credentials` is an environment with the keys of S3.

    All methods raise `TaskError` (StorageError, AccessDenied, OutOfDisk) or `NotFound`; messages contain no secrets.
    Requests are retried for `retry_s`; of an upload, a few parts of `part_bytes` are in memory.
    """

    def __init__(
        self,
        s3: S3Config | None,
        credentials: Mapping[str, str],
        *,
        part_bytes: int,
        retry_s: int = 30,
        hdfs_addresses: Mapping[str, HdfsAddress] | None = None,
    ) -> None:
        self._s3, self._hdfs_addresses, self._credentials = s3 or S3Config(), hdfs_addresses or {}, credentials
        self._part_bytes, self._retry_s = part_bytes, retry_s
        self._open = functools.cache(self._open_store)

    def find(self, location: Location) -> StoredObject | None:
        """Return the object, or None if it does not exist."""
        try:
            with self._store("look up", location) as store:
                return store.find(location)
        except NotFound:
            return None

    def size(self, location: Location) -> int | None:
        """Return the object's size in bytes, or None if it does not exist."""
        stored = self.find(location)
        return stored.size_bytes if stored is not None else None

    def read(self, location: Location) -> bytes:
        """Return a small object's content."""
        with self._store("read", location) as store:
            return store.read(location.path)

    def read_range(self, location: Location, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; both must be within the object, `length` may be 0."""
        if length == 0:
            return b""
        with self._store("read", location) as store:
            data = store.read_range(location.path, offset, length)
        if len(data) != length:
            change = f"{location.url} has changed: {len(data)} bytes at {offset}, expected {length}"
            raise TaskError(Reason.STORAGE_ERROR, change)
        return data

    def read_windows(self, location: Location, start: int, end: int, window_bytes: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `end`, with a request for each window, so that each can be retried."""
        for offset in range(start, end, window_bytes):
            yield self.read_range(location, offset, min(window_bytes, end - offset))

    def read_if_exists(self, location: Location) -> bytes | None:
        """Return a small object's content, or None if it does not exist."""
        try:
            return self.read(location)
        except NotFound:
            return None

    def listing(self, folder: Location, *, is_recursive: bool = True) -> Iterator[StoredObject]:
        """Yield all objects in a folder in the store's order; those with a `problem` cannot be read."""
        with self._store("list", folder) as store:
            yield from store.listing(folder, is_recursive)

    def files(self, folder: Location) -> Iterator[StoredObject]:
        """Yield the objects of `listing` that can be read: no task writes others."""
        return (file for file in self.listing(folder) if not file.problem)

    def children(self, folder: Location) -> list[StoredObject]:
        """Return the objects directly in a folder that can be read, by name; an unknown folder is empty."""
        there = (file for file in self.listing(folder, is_recursive=False) if not file.problem)
        return sorted(there, key=lambda file: file.location.path)

    def create(self, location: Location, content: bytes) -> bool:
        """Create the object with its content in one step; return False if it exists."""
        with self._store("create", location) as store:
            return store.create(location.path, content)

    def write(self, location: Location, content: bytes) -> None:
        """Write a small object, replacing an existing one."""
        with self._store("write", location) as store:
            store.write(location.path, content)

    def upload(self, location: Location, chunks: Iterable[bytes]) -> int:
        """Write an object of any size in limited memory; return its size. A failure leaves no object.

        Exceptions of `chunks` are raised unchanged.
        """
        source = Source(chunks)
        try:
            with self._store("write", location) as store:
                store.upload(location.path, source)
        except Exception:
            if source.error is not None:
                raise source.error from None
            raise
        return source.size_bytes

    def move(self, source: Location, target: Location, size_bytes: int) -> None:
        """Rename within a store, replacing an existing object. Raises NotFound if the source does not exist."""
        with self._store("move", source) as store:
            if source.scheme == "s3" and size_bytes > _S3_COPY_MAX_BYTES:
                self.upload(target, self.read_windows(source, 0, size_bytes, self._part_bytes))
                store.delete([source.path])
                return
            store.rename(source.path, target.path)

    def delete(self, locations: Iterable[Location]) -> None:
        """Delete objects of one store; missing ones are ignored."""
        for batch in _batches(locations, object_store.LIST_CHUNK):
            try:
                with self._store("delete", batch[0]) as store:
                    store.delete([location.path for location in batch])
            except NotFound:
                if len(batch) > 1:
                    for location in batch:
                        self.delete([location])

    def remove_folder(self, folder: Location) -> None:
        """Remove a folder with all objects that can be read."""
        self.delete(file.location for file in list(self.files(folder)))
        self.remove_empty_folders(folder)

    def remove_empty_folders(self, folder: Location) -> None:
        """Remove a folder's empty folders and then itself, if the store has real folders."""
        with self._store("clean", folder) as store:
            store.remove_empty_folders(folder.path)

    @contextlib.contextmanager
    def _store(self, action: str, location: Location) -> Iterator[Store]:
        """Return the location's store, and raise its errors as errors with a reason."""
        explain = hdfs.explain if location.scheme == "hdfs" else object_store.explain
        try:
            yield self._open(location.scheme, location.bucket)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise explain(error, action, location.url) from None
            raise NotFound(Reason.STORAGE_ERROR, f"{location.url} does not exist") from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise explain(error, action, location.url) from None

    def _open_store(self, scheme: str, bucket: str) -> Store:
        match scheme:
            case "file":
                return object_store.local_files(self._part_bytes)
            case "hdfs":
                return hdfs.HdfsStore(bucket, self._hdfs_addresses.get(bucket), self._credentials, self._retry_s)
            case _:
                return object_store.bucket(bucket, self._s3, self._credentials, self._part_bytes, self._retry_s)


def _batches(locations: Iterable[Location], size: int) -> Iterator[list[Location]]:
    source = iter(locations)
    while batch := list(itertools.islice(source, size)):
        yield batch
