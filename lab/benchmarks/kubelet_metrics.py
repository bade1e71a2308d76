"""CPU time of reading a node's /metrics/resource: an answer of 110 pods over TLS, from request to published usage.

    python -m benchmarks.kubelet_metrics [--nodes 250] [--reads 20] [--pods 110]

Kubelets are ports of another process. The operator keeps about 600 connections; reads of other nodes need a TLS
handshake each. Prints milliseconds of this process's CPU time per read.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from benchmarks.support import options, say
from boathouse.cluster import store, wire
from boathouse.services.instruments import counters, kubelet_client, poller
from boathouse.services.progress import certificates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

ADDRESS = "127.0.0.1"
NODE_SERIES = ("cpu_usage_seconds_total", "memory_working_set_bytes", "swap_usage_bytes")
LABELS = (
    (
        "container",
        (*NODE_SERIES, "start_time_seconds"),
        'container="task",namespace="team-{0}",pod="wordcount-{0:08d}-map-{0}-a1"',
    ),
    ("node", NODE_SERIES, ""),
    ("pod", NODE_SERIES, 'namespace="team-{0}",pod="wordcount-{0:08d}-map-{0}-a1"'),
)


def answer(pods: int) -> bytes:
    """Return an answer in the format of a kubelet, in which AT stands for the time and SECONDS for all values."""
    lines = []
    for scope, series, labels in LABELS:
        for name in series:
            lines += [f"# HELP {scope}_{name} [STABLE] {name} of the {scope}", f"# TYPE {scope}_{name} counter"]
            names = [f"{{{labels.format(pod)}}}" for pod in range(pods)] if labels else [""]
            lines += [f"{scope}_{name}{label_text} SECONDS AT" for label_text in names]
    return "\n".join([*lines, "resource_scrape_error 0", ""]).encode()


@contextlib.contextmanager
def kubelets(nodes: int, pods: int) -> Iterator[tuple[list[int], str]]:
    """Serve kubelets in another process until the block ends; give their ports and the authority's certificate."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there, nodes, pods), daemon=True)
    server.start()
    try:
        yield here.recv()
    finally:
        server.terminate()
        server.join()


def serve(ready: Connection, nodes: int, pods: int) -> None:
    """Answer at a port for each node; send the ports and the authority first."""
    asyncio.run(_serve(ready, nodes, answer(pods)))


async def request(reader: asyncio.StreamReader) -> bool:
    """Read a request; returns False at the end of the connection."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        return bool(await reader.readuntil(b"\r\n\r\n"))
    return False


async def _serve(ready: Connection, nodes: int, body: bytes) -> None:
    now = dt.datetime.now(dt.UTC)
    authority = certificates.authority(None, "kubelets", now)
    context = certificates.server_context(authority, [ADDRESS], now)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request(reader):
            filled = body.replace(b"SECONDS", b"%.9f" % (time.time() / 3)).replace(b"AT", b"%d" % (time.time() * 1000))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(filled) + filled)

    servers = [await asyncio.start_server(connected, ADDRESS, 0, ssl=context) for _ in range(nodes)]
    ready.send(([server.sockets[0].getsockname()[1] for server in servers], authority.pem))
    await asyncio.Event().wait()


class Token(kubelet_client.MetricsToken):
    """A token as long as those of an API server."""

    def __init__(self) -> None:
        pass

    @override
    async def current(self) -> str:
        """Return the token."""
        return "t" * 900

    @override
    def reject(self) -> None:
        """Renew nothing."""
        raise AssertionError("the server accepts every token")


def node(name: str, port: int) -> store.Added[wire.NodeView]:
    """Return a new node with a kubelet at a port."""
    status = wire.NodeStatus(
        conditions=(wire.Condition(type="Ready", status="True"),),
        addresses=(wire.NodeAddress(type="InternalIP", address=ADDRESS),),
        daemon_endpoints=wire.DaemonEndpoints(kubelet_endpoint=wire.DaemonEndpoint(port=port)),
    )
    return store.Added(key=name, new=wire.NodeView(metadata=wire.ObjectMeta(name=name), status=status))


async def measure(ports: list[int], reads: int, ca_file: Path) -> tuple[float, int]:
    """Read each node so many times; returns CPU seconds per read, and the usages that were published."""
    clock = [0.0]
    published: list[tuple[str, Any]] = []
    kubelets = kubelet_client.KubeletClient(ca_file)
    subject = poller.Poller(
        kubelets,
        Token(),
        counters.Rates(cpu_of_pods=False),
        lambda name, usage: published.append((name, usage)),
        poller.Signals(),
        interval_s=5.0,
        port=0,
        cadvisor=False,
        count=lambda result, _: failures.append(result) if result is not kubelet_client.Result.SUCCESS else None,
        monotonic=lambda: clock[0],
    )
    failures: list[kubelet_client.Result] = []
    for number, port in enumerate(ports):
        subject.on_node(node(f"node-{number}", port))
    rounds = [len(ports) / poller.READS_A_S] * (reads + 1)
    began_s = 0.0
    for number, seconds in enumerate(rounds):
        if number == 1:  # the first reads connect
            began_s = time.process_time()
            published.clear()
        due_s = clock[0] + max(5.5, 1.1 * seconds)
        while clock[0] < due_s:
            clock[0] += 0.5
            await subject.run_once()
    spent_s = time.process_time() - began_s
    kubelets.close()
    assert not failures, failures[:3]
    return spent_s / max(1, len(published)), len(published)


def main() -> None:
    """Run the benchmark."""
    given = options(__doc__ or "", nodes=250, reads=20, pods=110)
    with kubelets(given.nodes, given.pods) as (ports, pem), tempfile.TemporaryDirectory() as folder:
        ca_file = Path(folder) / "ca.crt"
        ca_file.write_text(pem)
        spent_s, count = asyncio.run(measure(ports, given.reads, ca_file))
    size_kb = len(answer(given.pods)) / 1000
    say(f"{given.nodes} nodes of {given.pods} pods ({size_kb:.0f} KB): {1000 * spent_s:.3f} ms a read, {count} reads")


if __name__ == "__main__":
    main()
