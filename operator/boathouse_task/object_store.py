"""Access S3 and local files with obstore, and convert its errors to reasons that say what to do.

obstore retries requests with backoff for `retry_s` before it raises an error. It refuses to list names that it cannot
represent, and all others of a page with them, so `local_listing` and `s3_listing` list.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import obstore
from obstore import exceptions, store as stores

from boathouse_task import contract, errors, locations

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Obstore, S3Config as ObstoreS3Config


_STAGED = re.compile(r"[^#]*#[0-9]+")  # names that obstore keeps for files that it writes


def local_listing(folder: locations.Location, is_recursive: bool) -> Iterator[locations.StoredObject]:
    """Yield the files of a folder, through links. Raises OSError, also if a link leads to a folder above it."""
    for path, size_bytes in _below(f"/{folder.path}", is_recursive=is_recursive, above=()):
        shown = os.fsencode(path).decode("utf-8", "backslashreplace").strip("/")
        problem = "is no UTF-8" if shown != path.strip("/") else locations.problem(shown)
        if not problem and _STAGED.fullmatch(shown.rpartition("/")[2]):
            problem = "ends with # and digits"
        yield locations.StoredObject(location=replace(folder, path=shown), size_bytes=size_bytes, problem=problem)


def _below(folder: str, *, is_recursive: bool, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, int]]:
    try:
        with os.scandir(folder) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)
        there = os.stat(folder)  # noqa: PTH116 - as the entries have it
    except (FileNotFoundError, NotADirectoryError):
        return
    if (there.st_dev, there.st_ino) in above:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
    for entry in entries:
        try:
            status = entry.stat()
        except FileNotFoundError:  # deleted meanwhile, or a link to nothing
            continue
        if stat.S_ISREG(status.st_mode):
            yield entry.path, status.st_size
        elif is_recursive and stat.S_ISDIR(status.st_mode):
            yield from _below(entry.path, is_recursive=True, above=(*above, (there.st_dev, there.st_ino)))


LIST_CHUNK = 1000
Lister = Callable[[locations.Location, bool], Iterator[locations.StoredObject]]
"""Yields the files of a folder; the second argument tells whether at any depth. An unknown folder is empty."""
_SMALLEST_PART_BYTES = 5 * 1024**2

_ENDPOINT = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_ERROR_CODE = re.compile(r"<Code>([A-Za-z]+)</Code>")
_SECRET = re.compile(r"(?i)\S*(secret|signature|credential|accesskey|token)\S*")
_USER_HINTS = {
    "NoSuchBucket": "the bucket does not exist: check the URL's bucket and spec.storage.s3",
    "InvalidAccessKeyId": "the endpoint does not know the access key: check the secret of spec.storage.s3.secretRef",
    "SignatureDoesNotMatch": "the secret key is wrong: check the secret of spec.storage.s3.secretRef",
    "InvalidToken": "the session token is wrong: check the secret of spec.storage.s3.secretRef",
    "AccessDenied": "access is denied: check the secret of spec.storage.s3.secretRef and the bucket's policy",
    "XAdminUserNotFound": "the endpoint does not know the access key: check the secret of spec.storage.s3.secretRef",
    "AuthorizationHeaderMalformed": "the region is wrong: check spec.storage.s3.region",
    "PermanentRedirect": "the region is wrong: check spec.storage.s3.region",
    "incorrectly configured region": "the region is wrong: check spec.storage.s3.region",
    "InvalidContentType": "spec.storage.s3.endpointURL has https://, but the endpoint uses http",
    "WRONG_VERSION_NUMBER": "spec.storage.s3.endpointURL has https://, but the endpoint uses http",
}
"""What to do about user errors, by a word in the error."""
_HINTS = _USER_HINTS | {
    "ExpiredToken": "the session token has expired: renew the secret of spec.storage.s3.secretRef",
    "Permission denied": "access is denied: tasks run as user and group 10001, check the owner and mode of the path",
    "CERTIFICATE_VERIFY_FAILED": "the certificate of spec.storage.s3.endpointURL is not valid, or has an unknown "
    "authority: add it to the image",
    "UnknownIssuer": "the certificate of spec.storage.s3.endpointURL has an unknown authority: add it to the image",
    "dns error": "the host name of spec.storage.s3.endpointURL does not resolve",
    "Name or service not known": "the host name of spec.storage.s3.endpointURL does not resolve",
    "name resolution": "the host name of spec.storage.s3.endpointURL does not resolve",
    "Connection refused": "spec.storage.s3.endpointURL refuses connections",
    "No space left": "the disk is full",
    "timed out": "no answer in time from spec.storage.s3.endpointURL",
    "error sending request": "no connection to spec.storage.s3.endpointURL",
}
_BAD_PATH = ("Could not parse path", "Filenames containing trailing")
_NO_PERMISSION = "Permission denied (os error 13)"
_DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError)


class ObjectStore:
    """A bucket, or the local files, in obstore. `listing` lists it: obstore refuses some names.

    Its methods raise `FileNotFoundError`, and the exceptions that `explain` converts.
    """

    def __init__(self, store: "Obstore", listing: Lister, part_bytes: int) -> None:
        self._store, self.listing, self._part_bytes = store, listing, part_bytes

    def find(self, location: locations.Location) -> locations.StoredObject:
        """Return the object."""
        return locations.StoredObject(location=location, size_bytes=obstore.head(self._store, location.path)["size"])

    def read(self, path: str) -> bytes:
        """Return a small object's content."""
        return bytes(obstore.get(self._store, path).bytes())

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a part of an object."""
        return bytes(obstore.get_range(self._store, path, start=offset, length=length))

    def create(self, path: str, content: bytes) -> bool:
        """Create the object; return False if it exists (O_EXCL, If-None-Match: *)."""
        try:
            obstore.put(self._store, path, content, mode="create", use_multipart=False)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return False
        return True

    def write(self, path: str, content: bytes) -> None:
        """Write a small object, replacing an existing one."""
        obstore.put(self._store, path, content, use_multipart=False)

    def upload(self, path: str, source: locations.Source) -> None:
        """Write a small object with one request, a larger one in parts."""
        content = source.small(self._part_bytes)
        if content is not None:
            self.write(path, content)
            return
        parts = 1 if self._part_bytes <= _SMALLEST_PART_BYTES else 2  # in memory
        obstore.put(self._store, path, source, use_multipart=True, chunk_size=self._part_bytes, max_concurrency=parts)

    def rename(self, source: str, target: str) -> None:
        """Rename an object (S3: copy, then delete), replacing an existing one."""
        obstore.rename(self._store, source, target)

    def delete(self, paths: list[str]) -> None:
        """Delete objects."""
        obstore.delete(self._store, paths)

    def remove_empty_folders(self, folder: str) -> None:
        """Remove a folder's empty folders and then itself; buckets have none."""
        if isinstance(self._store, stores.LocalStore):
            for path, _, _ in os.walk(f"/{folder}", topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - os.walk's strings


def bucket(
    name: str, s3: contract.S3Config, credentials: Mapping[str, str], part_bytes: int, retry_s: int
) -> ObjectStore:
    """Return the store of a bucket. Raises TaskError: InvalidSpec if the endpoint is not a URL."""
    endpoint = s3.endpoint_url
    if endpoint is not None and not _ENDPOINT.fullmatch(endpoint):
        shown = f"spec.storage.s3.endpointURL {locations.without_credentials(endpoint)!r}"
        raise errors.TaskError(
            contract.Reason.INVALID_SPEC, f"{shown} is not http://HOST[:PORT] or https://HOST[:PORT]"
        )
    from boathouse_task import s3_listing  # its libraries take memory, which jobs without S3 do not need

    url = f"{(endpoint or f'https://s3.{s3.region}.amazonaws.com').rstrip('/')}/{quote(name)}"
    keys = s3_listing.Bucket(url, s3.region, credentials, retry_s)
    return ObjectStore(_obstore(name, s3, credentials, retry_s), keys.listing, part_bytes)


def _obstore(name: str, s3: contract.S3Config, credentials: Mapping[str, str], retry_s: int) -> "Obstore":
    endpoint = s3.endpoint_url
    key, secret = credentials.get("AWS_ACCESS_KEY_ID"), credentials.get("AWS_SECRET_ACCESS_KEY")
    config: ObstoreS3Config = {"region": s3.region, "virtual_hosted_style_request": False, "conditional_put": "etag"}
    if endpoint:
        config["endpoint"] = endpoint.rstrip("/")
    if key and secret:
        config |= {"access_key_id": key, "secret_access_key": secret}
        if token := credentials.get("AWS_SESSION_TOKEN"):
            config["session_token"] = token
    else:
        config["skip_signature"] = True
    return stores.S3Store(
        name,
        config=config,
        client_options={"allow_http": bool(endpoint and endpoint.startswith("http://")), "timeout": "120s"},
        retry_config={
            "max_retries": 1_000_000,  # the time limit applies instead
            "retry_timeout": timedelta(seconds=retry_s),
            "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=10), "base": 2},
        },
    )


def not_exclusive(url: str) -> errors.TaskError:
    """Return the error for a store on which two attempts could both commit."""
    return errors.TaskError(
        contract.Reason.STORE_NOT_EXCLUSIVE,
        f"the store of {url} does not keep an exclusive create exclusive (S3 If-None-Match: *), so that two "
        "attempts of a task could both commit; use a store that does, as AWS S3, MinIO or versitygw 1.8 and later",
    )


def unreadable(action: str, url: str, problem: str) -> errors.TaskError:
    """Return the error for an object whose name the store's client cannot represent."""
    what = f"cannot {action} {locations.shown(url)}: its name {problem}"
    return errors.TaskError(contract.Reason.INVALID_URL, f"{what}: rename it, or choose a URL without it")


def explain(error: Exception, action: str, url: str) -> errors.TaskError:
    """Return the error. It quotes only known words of the response, which may contain keys."""
    if isinstance(error, exceptions.NotSupportedError) and action == "create":
        return not_exclusive(url)
    text = str(error)
    if isinstance(error, exceptions.InvalidPathError) or any(words in text for words in _BAD_PATH):
        problem = locations.problem(url.partition("://")[2].partition("/")[2])
        return unreadable(action, url, problem or "is none that the store's client can represent")
    code = _ERROR_CODE.search(text)
    denied = isinstance(error, _DENIED) or _NO_PERMISSION in text
    named = code.group(1) if code else "AccessDenied" if denied else ""
    cause = next((word for word in _HINTS if word in text), named)
    shown = cause or _SECRET.sub("...", text.partition("\n")[0])[:300]
    hint = _HINTS.get(cause) or f"the store answered: {shown}"
    other = contract.Reason.OUT_OF_DISK if cause == "No space left" else contract.Reason.STORAGE_ERROR
    reason = contract.Reason.ACCESS_DENIED if denied else other
    return errors.TaskError(reason, f"cannot {action} {url}: {hint}", user_error=denied or cause in _USER_HINTS)
