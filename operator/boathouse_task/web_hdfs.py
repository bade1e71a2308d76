"""Ask a NameNode where the blocks of a file are, by WebHDFS: hdfs-native does not tell."""

import http.client
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote, urlencode

import msgspec

MOST_HOSTS = 3
"""Hosts of a block that are kept, as many as replicas are usual."""
_WINDOW_BYTES = 4 * 1024**3
"""Part of a file of one request: 4096 blocks of the least size, 1 MiB, need 3 MiB with three replicas."""
_MOST_BYTES = 4 * 1024 * 1024
_TIMEOUT_S = 10.0
_CHUNK_BYTES = 64 * 1024
_MAX_NAME = 253
"""Maximum length of a host name."""


class Unavailable(Exception):  # noqa: N818 - a state, not an error of ours
    """The NameNode did not answer, or not with the locations of blocks."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A block of a file.

    Attributes:
        hosts: names of the DataNodes with a replica.
    """

    offset: int
    length: int
    hosts: list[str] = []


class _Blocks(msgspec.Struct, frozen=True):
    blocks: list[Block] = msgspec.field(name="BlockLocation", default_factory=list)


class _Answer(msgspec.Struct, frozen=True):
    locations: _Blocks = msgspec.field(name="BlockLocations")


def block_hosts(
    address: str,
    path: str,
    size_bytes: int,
    *,
    user: str,
    monotonic: Callable[[], float] = time.monotonic,
) -> Sequence[Block]:
    """Return the blocks of a file.

    Args:
        address: HOST:PORT of WebHDFS.
        path: the file, without slashes at its ends.
        size_bytes: size of the file.
        user: Hadoop's name of the user.
        monotonic: clock of timeouts.

    Raises:
        Unavailable: there is no such answer.
    """
    return [
        block
        for offset in range(0, size_bytes, _WINDOW_BYTES)
        for block in _window(address, path, offset, min(_WINDOW_BYTES, size_bytes - offset), user, monotonic)
    ]


def _window(
    address: str, path: str, offset: int, length: int, user: str, monotonic: Callable[[], float]
) -> Iterator[Block]:
    query = {"op": "GETFILEBLOCKLOCATIONS", "offset": offset, "length": length, "user.name": user}
    body = _get(address, f"/webhdfs/v1/{quote(path)}?{urlencode(query)}", monotonic)
    try:
        blocks = msgspec.json.decode(body, type=_Answer).locations.blocks
    except msgspec.DecodeError as error:
        raise Unavailable(f"WebHDFS of {address} answered with something else: {error}") from None
    for block in blocks:
        hosts = [host for host in block.hosts if 0 < len(host) <= _MAX_NAME]
        if block.hosts != hosts or len(hosts) > MOST_HOSTS:
            block = msgspec.structs.replace(block, hosts=hosts[:MOST_HOSTS])  # noqa: PLW2901
        yield block


def _get(address: str, target: str, monotonic: Callable[[], float]) -> bytes:
    """Return the body of an answer that is not too large, too slow, or a redirect."""
    deadline_s = monotonic() + _TIMEOUT_S
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", target, headers={"Accept-Encoding": "identity", "Connection": "close"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise Unavailable(f"WebHDFS of {address} answered with status {response.status}")
        body = bytearray()
        while chunk := response.read1(_CHUNK_BYTES):
            body += chunk
            if len(body) > _MOST_BYTES:
                raise Unavailable(f"the answer of WebHDFS of {address} has more than {_MOST_BYTES} bytes")
            if monotonic() > deadline_s:
                raise Unavailable(f"the answer of WebHDFS of {address} takes more than {_TIMEOUT_S:g} s")
    except (OSError, http.client.HTTPException, ValueError, socket.gaierror) as error:
        raise Unavailable(f"no answer from WebHDFS of {address}: {error!r}") from None
    finally:
        connection.close()
    return bytes(body)
