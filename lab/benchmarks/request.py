"""CPU time of one request to the API server, against another checkout's client, in alternating pairs.

    python -m benchmarks.request BASE_DIRECTORY [--requests 4000] [--pairs 5]

BASE_DIRECTORY is another checkout of this repository, with its own `.venv`. A process plays the API server: over TLS it
answers each request at once with 201. In each round another process binds pods with the client of one checkout, 32 at a
time, with a token of 900 characters; only its CPU time is counted, that of the kernel and of the handshakes included.
About 10 s a pair on two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
import multiprocessing
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

AT_ONCE = 32
BODY = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}).encode()
ANSWER = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0))
            writer.write(ANSWER)
    writer.transport.abort()


async def serve(told: Connection) -> None:
    """Play the API server; send the server's address and authority."""
    from boathouse.services.progress import certificates

    now = dt.datetime.now(dt.UTC)
    authority = certificates.authority(None, "api", now)
    context = certificates.server_context(authority, ["localhost"], now)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    told.send({"server": url, "ca_pem": authority.pem, "tls_server_name": "localhost", "token": "x" * 900})
    await server.serve_forever()


async def bind(settings: dict[str, Any], count: int) -> float:
    """Bind so many pods with the client of this process; return the microseconds of CPU time for each."""
    from boathouse.cluster import client, config

    async with client.ApiClient(config.ClusterConfig(**settings)) as api:
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                await api.bind("demo", f"pod-{number:05}", "uid", "node", {"boathouse.dev/epoch": "7"})

        used_s = time.process_time()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        return (time.process_time() - used_s) / count * 1e6


@dataclasses.dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout with its own Python."""

    root: Path

    def measure(self, settings: dict[str, Any], count: int) -> float:
        """Run `bind` in a separate process."""
        command: list[str | Path] = [self.root / ".venv/bin/python", __file__, "--bind", json.dumps(settings)]
        command += ["--requests", str(count)]
        return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


@contextlib.contextmanager
def served() -> Iterator[dict[str, Any]]:
    """Run the server; give what a client needs to know of it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=lambda: asyncio.run(serve(theirs)), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()


def main() -> None:
    """Compare the checkouts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("base", type=Path, nargs="?", help="the other checkout")
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--bind", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bind:
        print(asyncio.run(bind(arguments.bind, arguments.requests)))
        return
    if arguments.base is None:
        raise SystemExit("BASE_DIRECTORY is missing: name another checkout with its own .venv")
    checkouts = Checkout(arguments.base.resolve()), Checkout(Path(__file__).resolve().parents[2])
    found: dict[Checkout, list[float]] = {checkout: [] for checkout in checkouts}
    with served() as settings:
        for pair in range(arguments.pairs):
            for checkout in checkouts[:: -1 if pair % 2 else 1]:
                found[checkout].append(checkout.measure(settings, arguments.requests))
    base, this = (found[checkout] for checkout in checkouts)
    ratios = sorted(b / a for a, b in zip(base, this, strict=True))
    print(f"{statistics.median(this):.0f} us of CPU a request, base {statistics.median(base):.0f} us (medians)")
    print(f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
