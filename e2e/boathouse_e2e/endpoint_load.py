"""Load on a progress endpoint: large posts, idle connections, wrong tokens, endless headers. Run it as its own process.

    python -m boathouse_e2e.endpoint_load tokens --port 8443 --target /v1/jobs/demo/UID/tasks/POD/orders \
        --token-file FILE --count 50 --seconds 20

It is for this machine only: it connects to loopback, from `--addresses` addresses of 127.0.0.0/8, as if from so many
pods. It ends by itself after `--seconds`, with what it saw as one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import itertools
import json
import pathlib
import resource
import ssl
import sys
import time
from asyncio import sslproto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

MODES: Final = ("posts", "idle", "tokens", "headers")
MOST_CONNECTIONS: Final = 10_000
MOST_SECONDS: Final = 120
_PIECE: Final = b"\0" * (256 * 1024)
_HEADERS: Final = b"".join(b"X-%d: %08000d\r\n" % (number, 0) for number in range(128))
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PATIENCE_S: Final = 10.0
_PAUSE_S: Final = 0.01
_MOST_HANDSHAKES: Final = 1000
"""Connections that are being opened at a time: with 10,000 on half a core, none would be open before the load ends."""
_SPARE_DESCRIPTORS: Final = 200


@dataclasses.dataclass(slots=True)
class Seen:
    """What the endpoint did.

    Attributes:
        opened: TLS handshakes that were completed.
        refused: Connections that ended in their handshake, or could not be opened.
        most_open: Connections that were open at a time.
        answers: HTTP statuses; "none" where the connection ended without an answer.
    """

    opened: int = 0
    refused: int = 0
    open: int = 0
    most_open: int = 0
    answers: dict[str, int] = dataclasses.field(default_factory=dict)


class Load:
    """One kind of load.

    Args:
        port: The endpoint's, on loopback.
        plain_ports: Ports without TLS, which endless headers are sent to as well.
        target: The path of requests.
        token: A real token; wrong ones are made of it.
        body: Of a post; compressed, so that the endpoint has to read it; None for `body_bytes` of zeros.
        body_bytes: Of a post without `body`.
        addresses: How many source addresses there are.
    """

    def __init__(
        self,
        *,
        port: int,
        target: str,
        token: str,
        body: bytes | None,
        body_bytes: int,
        addresses: int,
        plain_ports: Sequence[int] = (),
    ) -> None:
        self._port, self._target, self._token, self._body, self._body_bytes = port, target, token, body, body_bytes
        self._sources = itertools.cycle(range(addresses))
        self._ports = itertools.cycle((port, *plain_ports))
        self._numbers = itertools.count(1)
        self._handshakes = asyncio.Semaphore(_MOST_HANDSHAKES)
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # whom it attacks is no question
        self.seen = Seen()

    async def run(self, mode: str, count: int, seconds: float) -> None:
        """Load the endpoint by so many connections at a time for so long."""
        work: dict[str, Callable[[], Awaitable[None]]] = {
            "posts": self._post,
            "idle": self._idle,
            "tokens": self._ask,
            "headers": self._endless_headers,
        }
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                for _ in range(count):
                    group.create_task(self._for_ever(work[mode]))

    async def _for_ever(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await work()
            await asyncio.sleep(_PAUSE_S)

    async def _post(self) -> None:
        async with self._connected() as (reader, writer):
            answer = asyncio.create_task(reader.readline())
            try:
                for piece in self._pieces():
                    writer.write(piece)
                    await writer.drain()
                    if answer.done() or writer.is_closing():
                        break
            finally:
                try:
                    async with asyncio.timeout(_PATIENCE_S):
                        self._note(await answer)
                except (OSError, TimeoutError):  # a reset may overtake the answer
                    self._note(b"")
                answer.cancel()

    def _pieces(self) -> Iterator[bytes]:
        """Yield a whole request: the given body, or zeros."""
        if self._body is not None:
            yield self._head("POST", self._token, f"Content-Encoding: gzip\r\nContent-Length: {len(self._body)}\r\n")
            yield from (self._body[start : start + len(_PIECE)] for start in range(0, len(self._body), len(_PIECE)))
            return
        yield self._head("POST", self._token, f"Content-Length: {self._body_bytes}\r\n")
        for sent in range(0, self._body_bytes, len(_PIECE)):
            yield _PIECE[: self._body_bytes - sent]

    async def _idle(self) -> None:
        async with self._connected() as (reader, _):
            await reader.read()

    async def _ask(self) -> None:
        async with self._connected() as (reader, writer):
            while not reader.at_eof():
                writer.write(self._head("GET", self._wrong_token(), ""))
                self._note(await reader.readline())
                await self._skip(reader)

    async def _endless_headers(self) -> None:
        async with self._connected(next(self._ports)) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + _HEADERS)
            self._note(await reader.readline())

    async def _skip(self, reader: asyncio.StreamReader) -> None:
        length = 0
        while line := (await reader.readline()).strip():
            name, _, value = line.lower().partition(b":")
            if name == b"content-length":
                length = int(value)
        await reader.readexactly(length)

    def _note(self, status_line: bytes) -> None:
        parts = status_line.split()
        status = parts[1].decode() if len(parts) > 1 else "none"
        self.seen.answers[status] = self.seen.answers.get(status, 0) + 1

    def _head(self, method: str, token: str, more: str) -> bytes:
        return f"{method} {self._target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n".encode()

    def _wrong_token(self) -> str:
        """Return the token with another signature each time, so that nobody can have seen it before."""
        number, tail = next(self._numbers), ""
        for _ in range(6):
            number, digit = divmod(number, len(_ALPHABET))
            tail += _ALPHABET[digit]
        return self._token[: -len(tail)] + tail

    async def _connect(self, source: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if port != self._port:
            return await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
        return await asyncio.open_connection(
            "127.0.0.1", port, ssl=self._context, local_addr=(source, 0), ssl_handshake_timeout=_PATIENCE_S
        )

    @contextlib.asynccontextmanager
    async def _connected(
        self, port: int | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        high, low = divmod(next(self._sources), 250)
        source = f"127.0.{1 + high}.{1 + low}"
        try:
            async with self._handshakes:
                reader, writer = await self._connect(source, port or self._port)
        except OSError:
            self.seen.refused += 1
            raise
        seen = self.seen
        seen.opened += 1
        seen.open += 1
        seen.most_open = max(seen.most_open, seen.open)
        try:
            yield reader, writer
        finally:
            seen.open -= 1
            writer.transport.abort()


def main() -> int:
    """Load the endpoint as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--plain-port", type=int, action="append", default=[], help="also sent endless headers")
    parser.add_argument("--target", required=True)
    parser.add_argument("--token-file", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=1, help="connections at a time")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--addresses", type=int, default=1)
    parser.add_argument("--body-file", type=pathlib.Path, help="of a post, compressed; else zeros of unknown length")
    parser.add_argument("--body-bytes", type=int, default=64 * 2**20)
    asked = parser.parse_args()
    count, seconds = min(asked.count, MOST_CONNECTIONS), min(asked.seconds, MOST_SECONDS)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + _SPARE_DESCRIPTORS, hard), hard))
    sslproto.SSLProtocol.max_size = 16 * 1024  # or 10,000 connections would take 2.5 GiB here
    load = Load(
        port=asked.port,
        plain_ports=asked.plain_port,
        target=asked.target,
        token=asked.token_file.read_text().strip(),
        body=asked.body_file.read_bytes() if asked.body_file else None,
        body_bytes=asked.body_bytes,
        addresses=asked.addresses,
    )
    began_s = time.monotonic()
    asyncio.run(load.run(asked.mode, count, seconds))
    took = {"mode": asked.mode, "seconds": round(time.monotonic() - began_s, 1), "cpu_s": round(time.process_time(), 1)}
    sys.stdout.write(json.dumps(took | dataclasses.asdict(load.seen)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
