"""CPU time of an informer per pod event, as a ratio to json.loads of the same lines, and memory per pod.

    python -m benchmarks.informer [--pods 10000] [--events 50000] [--rounds 5]

A second process plays the API server: it lists the pods in pages and then streams events of about 6 KB, as real ones
with managedFields are. Only this process's CPU is counted, sockets and HTTP included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from boathouse.cluster import catalogue, client, config, informer, wire

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PAGE = 500
LINES_IN_A_WRITE = 16


def pod(number: int, revision: int, *, phase: str = "Running") -> dict[str, Any]:
    """Return a pod as an API server shows one of a real task: about 6 KB with its managedFields."""
    name = f"wordcount-1a2b3c4d-s0-m-{number:05}-a1"
    labels = {f"boathouse.dev/{key}": f"value-of-{key}" for key in ("job-uid", "kind", "step", "task-type", "attempt")}
    env = [{"name": f"BOATHOUSE_VARIABLE_{n}", "value": "x" * 60} for n in range(12)]
    resources = {"requests": {"cpu": "500m", "memory": "255Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    mounts = [{"name": f"volume-{n}", "mountPath": f"/var/run/{n}", "readOnly": True} for n in range(5)]
    fields: dict[str, Any] = {f"f:field-{n}": {".": {}, "f:name": {}, "f:value": {}} for n in range(38)}
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready", "PodReadyToStartContainers")
    ]
    owner = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRJob", "name": "wordcount", "uid": "u" * 36}
    managed = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": f"{number:08}-0000-0000-0000-000000000000",
            "resourceVersion": str(revision),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": {"boathouse.dev/epoch": "7", "boathouse.dev/split": "s3://bucket/book.txt+0+67108864"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            "managedFields": [{**managed, "fieldsType": "FieldsV1", "fieldsV1": fields}],
        },
        "spec": {
            "volumes": [{"name": f"volume-{n}", "emptyDir": {}} for n in range(5)],
            "containers": [
                {"name": "task", "image": "task", "env": env, "resources": resources, "volumeMounts": mounts}
            ],
            "restartPolicy": "Never",
            "nodeName": f"node-{number % 200}",
            "schedulerName": "boathouse",
            "priority": 0,
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{taint}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for taint in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": phase,
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.1",
            "startTime": "2026-01-01T00:00:00Z",
            "containerStatuses": [
                {
                    "name": "task",
                    "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}},
                    "ready": True,
                    "restartCount": 0,
                    "image": "localhost/boathouse-task:dev",
                    "imageID": "sha256:" + "0" * 64,
                    "allocatedResources": resources["requests"],
                    "resources": resources,
                }
            ],
            "qosClass": "Burstable",
        },
    }


def line(number: int, revision: int) -> bytes:
    """Return a line of a WATCH."""
    return json.dumps({"type": "MODIFIED", "object": pod(number, revision)}, separators=(",", ":")).encode() + b"\n"


class Server:
    """Lists pods in pages, then streams the events of one round each time it is told to."""

    def __init__(self, pods: int, events: int, orders: Connection) -> None:
        self.pods, self.events, self.orders = pods, events, orders
        self.revision = pods

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a LIST or a WATCH."""
        if request.query.get("watch"):
            return await self.watch(request)
        begin = int(request.query.get("continue", "0"))
        end = min(begin + PAGE, self.pods)
        metadata = {"resourceVersion": str(self.pods)} | ({"continue": str(end)} if end < self.pods else {})
        return web.json_response({"metadata": metadata, "items": [pod(n, n + 1) for n in range(begin, end)]})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """Stream a round of events for each order."""
        response = web.StreamResponse()
        await response.prepare(request)
        while await asyncio.to_thread(self.orders.recv):
            lines = [line(n % self.pods, self.revision + n + 1) for n in range(self.events)]
            self.revision += self.events
            self.orders.send("ready")
            await asyncio.to_thread(self.orders.recv)
            for begin in range(0, self.events, LINES_IN_A_WRITE):
                await response.write(b"".join(lines[begin : begin + LINES_IN_A_WRITE]))
        return response


def serve(pods: int, events: int, orders: Connection) -> None:
    """Run the server until it is told to stop."""

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/api/v1/pods", Server(pods, events, orders).handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        orders.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


async def measure(url: str, orders: Connection, events: int, rounds: int) -> tuple[list[float], float, float]:
    """Return microseconds of CPU for each event by round, seconds of CPU for the list, and MiB of RSS after all."""
    seen, done = 0, asyncio.Event()

    def on_change(_: object) -> None:
        nonlocal seen
        seen += 1
        if seen == events:
            done.set()

    async with client.ApiClient(config.ClusterConfig(server=url)) as api:
        pods: informer.Informer[wire.PodView] = informer.Informer(
            api, catalogue.PODS, on_change=on_change, fields=catalogue.PODS_THAT_HOLD_RESOURCES
        )
        began_s = time.process_time()
        running = asyncio.create_task(pods.run())
        await pods.synced.wait()
        list_s = time.process_time() - began_s
        costs = []
        for _ in range(rounds):
            orders.send("prepare")
            await asyncio.to_thread(orders.recv)
            seen = 0
            done.clear()
            began_s = time.process_time()
            orders.send("go")
            await done.wait()
            costs.append((time.process_time() - began_s) / events * 1e6)
        rss_mib = rss_bytes() / 2**20
        running.cancel()
        await asyncio.wait([running])
    return costs, list_s, rss_mib


def rss_bytes() -> int:
    """Return this process's resident memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def plain_cost(rounds: int) -> float:
    """Return the microseconds that json.loads takes for such a line, the median of the rounds."""
    lines = [line(n, n) for n in range(2000)]
    costs = []
    for _ in range(rounds):
        began_s = time.process_time()
        for one in lines:
            json.loads(one)
        costs.append((time.process_time() - began_s) / len(lines) * 1e6)
    return statistics.median(costs)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=10_000, help="pods in view (default: %(default)s)")
    parser.add_argument("--events", type=int, default=20_000, help="events in a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; the median is shown (default: %(default)s)")
    options = parser.parse_args()
    before_mib = rss_bytes() / 2**20
    orders, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(options.pods, options.events, theirs), daemon=True
    )
    server.start()
    try:
        url = f"http://127.0.0.1:{orders.recv()}"
        costs, list_s, rss_mib = asyncio.run(measure(url, orders, options.events, options.rounds))
    finally:
        server.kill()
        server.join()
    plain_us = plain_cost(options.rounds)
    event_us = statistics.median(costs)
    print(f"event size                {len(line(0, 1)):>8} bytes")
    print(f"informer, CPU per event   {event_us:>8.1f} us   (rounds: {', '.join(f'{c:.1f}' for c in costs)})")
    print(f"json.loads of the same    {plain_us:>8.1f} us")
    print(f"ratio                     {event_us / plain_us:>8.2f}")
    print(f"list of {options.pods} pods, CPU  {list_s:>8.2f} s")
    print(f"RSS with {options.pods} pods     {rss_mib:>8.0f} MiB (before: {before_mib:.0f} MiB)")


if __name__ == "__main__":
    main()
