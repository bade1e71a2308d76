"""List the keys of a bucket as they are.

obstore refuses a page of keys if it cannot represent one of them, without the others, and drops slashes at the ends of
keys. Requests are signed by AWS Signature Version 4.
"""

import datetime as dt
import hashlib
import hmac
import http.client
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote_plus, urlsplit
from xml.etree import ElementTree as ET

from boathouse_task import locations
from boathouse_task.locations import Location, StoredObject

_TIMEOUT_S = 120.0
_MOST_BYTES = 32 * 1024 * 1024
"""Maximum of an answer: 1,000 keys of 1,024 bytes, each byte encoded by three, and owners."""
_MOST_ERROR_BYTES = 64 * 1024
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.2, 10.0
_NO_CONTENT = hashlib.sha256(b"").hexdigest()
_SIGNED_HEADERS = "host;x-amz-content-sha256;x-amz-date"
_TOKEN = "x-amz-security-token"  # noqa: S105 - its header
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
"""Refusals besides errors of the server that a repeated request may not get."""


class _Unavailable(OSError):  # noqa: N818 - a state, not an error of ours
    """The request may succeed later."""


class Bucket:
    """Lists the bucket at a URL, with requests that are repeated for `retry_s`.

    The credentials are an environment with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if the
    keys are temporary; without keys requests are not signed.
    """

    def __init__(
        self,
        url: str,
        region: str,
        credentials: Mapping[str, str],
        retry_s: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url, self._region, self._retry_s = url, region, retry_s
        self._sleep, self._open = sleep, _opener().open
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        self._key, self._secret, self._token = (credentials.get(name, "") for name in names)

    def listing(self, folder: Location, is_recursive: bool) -> Iterator[StoredObject]:
        """Yield the objects in a folder; without `is_recursive` those directly in it.

        Empty objects that stand for folders are none. Raises PermissionError if the request was refused,
        FileNotFoundError if the bucket does not exist, else OSError with the store's code.
        """
        query = {"encoding-type": "url", "list-type": "2", "prefix": f"{folder.path}/" if folder.path else ""}
        if not is_recursive:
            query["delimiter"] = "/"
        while True:
            keys, following = _page(self._answer(query))
            for key, size_bytes in keys:
                if size_bytes or not key.endswith("/"):
                    location, problem = replace(folder, path=key), locations.problem(key)
                    yield StoredObject(location=location, size_bytes=size_bytes, problem=problem)
            if following is None:
                return
            query["continuation-token"] = following

    def _answer(self, query: Mapping[str, str]) -> bytes:
        deadline_s, delay_s = time.monotonic() + self._retry_s, _FIRST_DELAY_S
        while True:
            try:
                return self._request(query)
            except _Unavailable:
                if time.monotonic() + delay_s > deadline_s:
                    raise
            self._sleep(delay_s)
            delay_s = min(_LONGEST_DELAY_S, 2 * delay_s)

    def _request(self, query: Mapping[str, str]) -> bytes:
        text = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query.items()))
        try:
            request = urllib.request.Request(f"{self._url}?{text}", headers=self._headers(text))  # noqa: S310 - checked
            with self._open(request, timeout=_TIMEOUT_S) as response:
                body: bytes = response.read(_MOST_BYTES + 1)
        except HTTPError as answer:
            with answer:
                raise _refusal(answer.code, answer.read(_MOST_ERROR_BYTES)) from None
        except URLError as error:
            raise _Unavailable(f"error sending request: {error.reason}") from None
        except (OSError, http.client.HTTPException) as error:
            raise _Unavailable(f"error sending request: {error!r}") from None
        if len(body) > _MOST_BYTES:
            raise OSError(f"the list of the store has more than {_MOST_BYTES} bytes")
        return body

    def _headers(self, query: str) -> dict[str, str]:
        if not (self._key and self._secret):
            return {}
        parts = urlsplit(self._url)
        stamp = f"{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}"
        keys = (self._key, self._secret, self._token)
        signed = authorization(parts.netloc, parts.path, query, stamp, self._region, *keys)
        token = {_TOKEN: self._token} if self._token else {}
        return {"Authorization": signed, "x-amz-content-sha256": _NO_CONTENT, "x-amz-date": stamp, **token}


def _page(body: bytes) -> tuple[list[tuple[str, int]], str | None]:
    """Return a page's keys and sizes, and the token of the next page, if any. Raises OSError if it is no list."""
    if b"<!" in body:
        raise OSError("the list of the store has a document type")
    try:
        root = ET.fromstring(body)  # noqa: S314 - it has no entities of its own
    except ET.ParseError as error:
        raise OSError(f"the list of the store is no XML: {error}") from None
    following = root.findtext("{*}NextContinuationToken") or None
    if following is None and root.findtext("{*}IsTruncated") == "true":
        raise OSError("the list of the store goes on, but does not name its next page")
    decoded = unquote_plus if root.findtext("{*}EncodingType") == "url" else str
    contents = root.iterfind("{*}Contents")
    return [(decoded(item.findtext("{*}Key", "")), int(item.findtext("{*}Size", ""))) for item in contents], following


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener that knows proxies, and follows no redirect: a signed request is for one host."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def authorization(
    host: str, path: str, query: str, stamp: str, region: str, key: str, secret: str, token: str = ""
) -> str:
    """Return the header that signs a GET request without content."""
    headers, names = f"host:{host}\nx-amz-content-sha256:{_NO_CONTENT}\nx-amz-date:{stamp}\n", _SIGNED_HEADERS
    if token:
        headers, names = f"{headers}{_TOKEN}:{token}\n", f"{names};{_TOKEN}"
    request = "\n".join(("GET", path or "/", query, headers, names, _NO_CONTENT))
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    secret_key = f"AWS4{secret}".encode()
    for word in (*scope.split("/"), text):
        secret_key = hmac.digest(secret_key, word.encode(), "sha256")
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope},SignedHeaders={names},Signature={secret_key.hex()}"


def _refusal(status: int, body: bytes) -> OSError:
    """Return the error of an answer, with the code that it names and nothing else of it."""
    parts = body.decode("utf-8", "replace").partition("<Code>")[2].partition("</Code>")
    code = parts[0] if parts[1] and parts[0].isalnum() else ""
    text = f"status {status} <Code>{code}</Code>" if code else f"status {status}"
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return PermissionError(text)
    if code == "NoSuchBucket":
        return FileNotFoundError(text)
    return _Unavailable(text) if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _AGAIN else OSError(text)
