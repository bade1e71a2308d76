"""The storage by URLs, s3://BUCKET/KEY, hdfs://CLUSTER/PATH and file:///PATH, with Hadoop's folders and globs.

A URL's store is a bucket, the local files (`object_store`), or the HDFS of a cluster (`hdfs`).
"""

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from boathouse_task.contract import Reason
from boathouse_task.errors import TaskError

_AUTHORITY = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_GLOB = re.compile(r"[*?\[{]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Location in a store."""

    scheme: str
    """s3, hdfs or file."""
    bucket: str
    """S3's bucket, or HDFS's cluster; "" for files."""
    path: str
    """The key without slashes at its ends; "" is the root."""

    @property
    def url(self) -> str:
        """URL of the location."""
        return f"{self.scheme}://{self.bucket}/{self.path}"

    def child(self, name: str) -> "Location":
        """Return the location `name` below this one."""
        return self.at(f"{self.path}/{name}" if self.path else name)

    def at(self, path: str) -> "Location":
        """Return another location in the same store."""
        return Location(scheme=self.scheme, bucket=self.bucket, path=path.strip("/"))


def parse(url: str) -> Location:
    """Return the location that a URL names. Raises TaskError: InvalidURL for other schemes and no bucket."""
    scheme, _, rest = url.partition("://")
    bucket, _, path = rest.partition("/")
    is_store = (scheme == "s3" and bucket) or (scheme == "hdfs" and _AUTHORITY.fullmatch(bucket))
    if is_store or (scheme == "file" and not bucket and path):
        return Location(scheme=scheme, bucket=bucket, path=path.strip("/"))
    raise TaskError(
        Reason.INVALID_URL, f"{without_credentials(url)!r} is not s3://BUCKET/KEY, hdfs://CLUSTER/PATH or file:///PATH"
    )


def without_credentials(url: str) -> str:
    """Return the URL without a user:password part, for messages."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return url.replace(parts.netloc, parts.netloc.rpartition("@")[2]) if "@" in parts.netloc else url


def problem(path: str) -> str:
    """Return why an object of this path cannot be read from S3 or as a file; "" if it can."""
    segments = path.split("/")
    if "" in segments:
        return "has a slash at an end, or two in a row"
    if "." in segments or ".." in segments:
        return "has a segment . or .."
    return "has a control character" if _CONTROL.search(path) else ""


def shown(url: str) -> str:
    """Return a URL for a message of one line, with control characters as in Python's strings."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], url)


def is_hidden(name: str) -> bool:
    """Return whether Hadoop's FileInputFormat skips a file or folder of this name."""
    return name.startswith(("_", "."))


def is_glob(path: str) -> bool:
    """Return whether the path has one of Hadoop's wildcards: * ? [..] {a,b}."""
    return _GLOB.search(path) is not None


def expand_braces(pattern: str) -> Iterator[str]:
    """Expand `a{b,c{d,e}}` to `ab`, `acd`, `ace`, in this order; an unmatched brace is literal."""
    opening = pattern.find("{")
    closing, commas = _braces(pattern, opening)
    if closing < 0:
        yield pattern
        return
    for start, end in itertools.pairwise([opening, *commas, closing]):
        yield from expand_braces(pattern[:opening] + pattern[start + 1 : end] + pattern[closing + 1 :])


def _braces(pattern: str, opening: int) -> tuple[int, list[int]]:
    """Return the position of the brace that closes `opening` (-1: none), and of the commas of its level."""
    depth, commas = 0, []
    for place in range(opening, len(pattern)) if opening >= 0 else ():
        char = pattern[place]
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 1:
            commas.append(place)
        if depth == 0:
            return place, commas
    return -1, []


def segment_pattern(segment: str) -> re.Pattern[str]:
    """Return a path segment's wildcards as a regular expression, which matches hidden names only if it names them."""
    text = "" if segment[:1] in ("_", ".") else "(?![_.])"
    place = 0
    while place < len(segment):
        char = segment[place]
        end = segment.find("]", place + 2) if char == "[" else -1
        if end > 0:
            inner = segment[place + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            text += f"[^{inner[1:]}]" if inner[0] in "!^" else f"[{inner}]"
            place = end + 1
            continue
        text += {"*": ".*", "?": "."}.get(char, re.escape(char))
        place += 1
    try:
        return re.compile(text, re.DOTALL)
    except re.error as error:
        raise TaskError(Reason.INVALID_URL, f"the wildcard {segment!r} is not valid: {error}") from None


def glob_base(path: str) -> str:
    """Return the folder above the first wildcard."""
    return "/".join(itertools.takewhile(lambda segment: not is_glob(segment), path.split("/")))


def matches(pattern: str, path: str) -> bool:
    """Return whether the glob matches `path`, or a folder that contains it at any depth outside hidden folders."""
    wanted, given = pattern.split("/"), path.split("/")
    if len(given) < len(wanted) or any(is_hidden(name) for name in given[len(wanted) :]):
        return False
    return all(
        segment_pattern(want).fullmatch(name) if is_glob(want) else want == name
        for want, name in zip(wanted, given, strict=False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object or a file of a store."""

    location: Location
    size_bytes: int
    block_bytes: int = 0
    """Size of its blocks; 0 if the store has none."""
    problem: str = ""
    """What is wrong with its name, if it cannot be read under it; else ""."""


class Source:
    """Iterator of chunks that stores its size and its own error."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._head: deque[bytes] = deque()
        self.size_bytes = 0
        self.error: Exception | None = None

    def small(self, least_bytes: int) -> bytes | None:
        """Return the content if it has fewer bytes; else None, and iterating yields all of it."""
        for chunk in self:
            self._head.append(chunk)
            if self.size_bytes >= least_bytes:
                return None
        return b"".join(self._head)

    def __iter__(self) -> Iterator[bytes]:
        while self._head:
            yield self._head.popleft()  # frees the chunks one by one
        try:
            for chunk in self._chunks:
                self.size_bytes += len(chunk)
                yield chunk
        except Exception as error:
            self.error = error
            raise
