"""Access the user's storage (S3 and folders) with obstore, and convert its errors to reasons that say what to do.

obstore retries requests with backoff for `retry_s` before it raises an error.
"""

import contextlib
import functools
import itertools
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import obstore
from obstore import exceptions
from obstore import store as stores

from boathouse_task.contract import Reason, S3Config
from boathouse_task.errors import NotFound, TaskError
from boathouse_task.locations import Location, without_credentials

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from obstore.store import S3Config as ObstoreS3Config

_LIST_CHUNK = 1000
_S3_COPY_MAX_BYTES = 5 * 1024**3
"""Maximum size of an object for CopyObject."""
_SMALLEST_PART_BYTES = 5 * 1024**2

_ENDPOINT = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_ERROR_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>")
_HINTS = {
    "NoSuchBucket": "the bucket does not exist: check the URL's bucket and spec.storage.s3",
    "InvalidAccessKeyId": "the endpoint does not know the access key: check the secret of spec.storage.s3.secretRef",
    "SignatureDoesNotMatch": "the secret key is wrong: check the secret of spec.storage.s3.secretRef",
    "AccessDenied": "access is denied: check the secret of spec.storage.s3.secretRef and the bucket's policy",
    "XAdminUserNotFound": "the endpoint does not know the access key: check the secret of spec.storage.s3.secretRef",
    "AuthorizationHeaderMalformed": "the region is wrong: check spec.storage.s3.region",
    "InvalidContentType": "spec.storage.s3.endpointURL has https://, but the endpoint uses http",
    "UnknownIssuer": "the certificate of spec.storage.s3.endpointURL has an unknown authority: add it to the image",
    "dns error": "the host name of spec.storage.s3.endpointURL does not resolve",
    "Connection refused": "spec.storage.s3.endpointURL refuses connections",
    "No space left": "the disk is full",
    "timed out": "no answer in time from spec.storage.s3.endpointURL",
    "error sending request": "no connection to spec.storage.s3.endpointURL",
}
_USER_ERRORS = (
    "NoSuchBucket",
    "InvalidAccessKeyId",
    "XAdminUserNotFound",
    "SignatureDoesNotMatch",
    "AccessDenied",
    "AuthorizationHeaderMalformed",
    "InvalidContentType",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object of a listing."""

    location: Location
    size_bytes: int


class Storage:
    """The stores that a job's URLs name.

    Args:
        s3: endpoint of s3:// URLs.
        credentials: environment with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
        part_bytes: size of a part of an upload, of which a few are in memory.
        retry_s: how long a request is retried.

    All methods raise `TaskError` (StorageError, AccessDenied, OutOfDisk) or `NotFound`; messages contain no secrets.
    """

    def __init__(
        self, s3: S3Config | None, credentials: Mapping[str, str], *, part_bytes: int, retry_s: int = 30
    ) -> None:
        self._s3 = s3 or S3Config()
        self._credentials = credentials
        self._part_bytes = part_bytes
        self._retry_s = retry_s
        self._open = functools.cache(self._open_store)

    def size(self, location: Location) -> int | None:
        """Return the object's size in bytes, or None if it does not exist."""
        try:
            with _reasons("look up", location):
                return int(obstore.head(self._store(location), location.path)["size"])
        except NotFound:
            return None

    def read(self, location: Location) -> bytes:
        """Return a small object's content."""
        with _reasons("read", location):
            return bytes(obstore.get(self._store(location), location.path).bytes())

    def read_range(self, location: Location, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`; both must be within the object, `length` may be 0."""
        if length == 0:
            return b""
        with _reasons("read", location):
            data = bytes(obstore.get_range(self._store(location), location.path, start=offset, length=length))
        if len(data) != length:
            message = f"{location.url} has changed: {len(data)} bytes at {offset}, expected {length}"
            raise TaskError(Reason.STORAGE_ERROR, message, user_error=False)
        return data

    def read_windows(self, location: Location, start: int, end: int, window_bytes: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `end`, with a request for each window, so that each can be retried."""
        for offset in range(start, end, window_bytes):
            yield self.read_range(location, offset, min(window_bytes, end - offset))

    def files(self, folder: Location) -> Iterator[StoredObject]:
        """Yield all objects below a folder at any depth, in the store's order; an unknown folder is empty."""
        with _reasons("list", folder):
            try:
                for batch in obstore.list(self._store(folder), folder.path or None, chunk_size=_LIST_CHUNK):
                    for meta in batch:
                        yield StoredObject(location=folder.at(str(meta["path"])), size_bytes=int(meta["size"]))
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise

    def children(self, folder: Location) -> list[StoredObject]:
        """Return the objects directly in a folder, by name; an unknown folder is empty."""
        with _reasons("list", folder):
            try:
                found = obstore.list_with_delimiter(self._store(folder), folder.path or None)["objects"]
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return []
        there = (StoredObject(location=folder.at(str(meta["path"])), size_bytes=int(meta["size"])) for meta in found)
        return sorted(there, key=lambda file: file.location.path)

    def create(self, location: Location, content: bytes) -> bool:
        """Create the object; return False if it exists (O_EXCL, If-None-Match: *)."""
        with _reasons("create", location):
            try:
                obstore.put(self._store(location), location.path, content, mode="create", use_multipart=False)
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return False
            except exceptions.NotSupportedError as error:
                raise not_exclusive(location) from error
        return True

    def write(self, location: Location, content: bytes) -> None:
        """Write a small object, replacing an existing one."""
        with _reasons("write", location):
            obstore.put(self._store(location), location.path, content, use_multipart=False)

    def upload(self, location: Location, chunks: Iterable[bytes]) -> int:
        """Write an object of any size in limited memory; return its size. A failure leaves no object.

        Exceptions of `chunks` are raised unchanged.
        """
        source = _Source(chunks)
        head = source.take(self._part_bytes)  # frees its chunks one by one
        try:
            with _reasons("write", location):
                self._put(location, head, source)
        except TaskError:
            if source.error is not None:
                raise source.error from None
            raise
        return source.size_bytes

    def _put(self, location: Location, head: deque[bytes], source: "_Source") -> None:
        """Write a small object with one request, a larger one in parts."""
        if source.exhausted:
            obstore.put(self._store(location), location.path, b"".join(head), use_multipart=False)
            return
        obstore.put(
            self._store(location),
            location.path,
            itertools.chain((head.popleft() for _ in range(len(head))), source),
            use_multipart=True,
            chunk_size=self._part_bytes,
            max_concurrency=1 if self._part_bytes <= _SMALLEST_PART_BYTES else 2,  # each has a part in memory
        )

    def move(self, source: Location, target: Location, size_bytes: int) -> None:
        """Rename within a store (S3: copy, then delete), replacing an existing object.

        Raises:
            NotFound: the source does not exist.
        """
        with _reasons("move", source):
            if source.scheme == "s3" and size_bytes > _S3_COPY_MAX_BYTES:
                self.upload(target, self.read_windows(source, 0, size_bytes, self._part_bytes))
                obstore.delete(self._store(source), [source.path])
                return
            obstore.rename(self._store(source), source.path, target.path)

    def delete(self, locations: Iterable[Location]) -> None:
        """Delete objects of one store; missing ones are ignored."""
        for batch in _batches(locations, _LIST_CHUNK):
            try:
                with _reasons("delete", batch[0]):
                    obstore.delete(self._store(batch[0]), [location.path for location in batch])
            except NotFound:
                if len(batch) > 1:
                    for location in batch:
                        self.delete([location])

    def remove_empty_folders(self, folder: Location) -> None:
        """Remove a folder's empty folders and then itself, if the store has real folders."""
        if folder.scheme == "file":
            for path, _, _ in os.walk(f"/{folder.path}", topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - os.walk's strings

    def _store(self, location: Location) -> "ObjectStore":
        return self._open(location.scheme, location.bucket)

    def _open_store(self, scheme: str, bucket: str) -> "ObjectStore":
        if scheme == "file":
            return stores.LocalStore(prefix="/")
        endpoint = self._s3.endpoint_url
        if endpoint is not None and not _ENDPOINT.fullmatch(endpoint):
            shown = without_credentials(endpoint)
            message = f"spec.storage.s3.endpointURL {shown!r} is not http://HOST[:PORT] or https://HOST[:PORT]"
            raise TaskError(Reason.INVALID_SPEC, message, user_error=True)
        key, secret = self._credentials.get("AWS_ACCESS_KEY_ID"), self._credentials.get("AWS_SECRET_ACCESS_KEY")
        config: ObstoreS3Config = {
            "region": self._s3.region,
            "virtual_hosted_style_request": False,
            "conditional_put": "etag",
        }
        if endpoint:
            config["endpoint"] = endpoint.rstrip("/")
        if key and secret:
            config |= {"access_key_id": key, "secret_access_key": secret}
        else:
            config["skip_signature"] = True
        return stores.S3Store(
            bucket,
            config=config,
            client_options={"allow_http": bool(endpoint and endpoint.startswith("http://")), "timeout": "120s"},
            retry_config={
                "max_retries": 1_000_000,  # the time limit applies instead
                "retry_timeout": timedelta(seconds=self._retry_s),
                "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=10), "base": 2},
            },
        )


def _batches(locations: Iterable[Location], size: int) -> Iterator[list[Location]]:
    source = iter(locations)
    while batch := list(itertools.islice(source, size)):
        yield batch


class _Source:
    """Iterator of chunks that stores its size and its own error."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.size_bytes = 0
        self.exhausted = False
        self.error: Exception | None = None

    def take(self, least_bytes: int) -> deque[bytes]:
        """At least so many bytes, or all there are."""
        taken: deque[bytes] = deque()
        for chunk in self._chunks:
            taken.append(chunk)
            self.size_bytes += len(chunk)
            if self.size_bytes >= least_bytes:
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


def not_exclusive(location: Location) -> TaskError:
    """Return the error for a store on which two attempts could both commit."""
    message = (
        f"the store of {location.url} does not keep an exclusive create exclusive (S3 If-None-Match: *), so that two "
        "attempts of a task could both commit; use a store that does, as AWS S3, MinIO or versitygw 1.8 and later"
    )
    return TaskError(Reason.STORE_NOT_EXCLUSIVE, message, user_error=True)


@contextlib.contextmanager
def _reasons(action: str, location: Location) -> Iterator[None]:
    """Raise obstore's errors as errors with a reason."""
    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise _explain(error, action, location) from None
        raise NotFound(f"{location.url} does not exist") from None
    except (exceptions.BaseError, OSError, ValueError) as error:
        raise _explain(error, action, location) from None


def _explain(error: Exception, action: str, location: Location) -> TaskError:
    """Return the error: what, where, what to do. It quotes only known words of the response, which may contain keys."""
    text = str(error)
    code = _ERROR_CODE.search(text)
    cause = next((word for word in _HINTS if word in text), code.group(1) if code else "")
    denied = isinstance(error, (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError))
    if not cause and denied:
        cause = "AccessDenied"
    hint = _HINTS.get(cause) or f"the store answered: {cause or _first_line(text)}"
    reason = (
        Reason.ACCESS_DENIED if denied else Reason.OUT_OF_DISK if cause == "No space left" else Reason.STORAGE_ERROR
    )
    return TaskError(reason, f"cannot {action} {location.url}: {hint}", user_error=denied or cause in _USER_ERRORS)


def _first_line(text: str) -> str:
    """Return the error's first line without credentials and signatures."""
    line = text.partition("\n")[0]
    return re.sub(r"(?i)\S*(secret|signature|credential|accesskey|token)\S*", "...", line)[:300]
