"""Pods of a tenant flood all ports of the operator with headers, on a real cluster with the chart's limits.

The control is the same pods with honest requests, which use up their CPU beside these as the flood does. Prints the
times of another namespace's job under both.
"""

from __future__ import annotations

import json
import statistics
import time

import pytest

from boathouse_e2e import faults, install
from e2e.tests import harness, replicas

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.long, pytest.mark.timeout(1800)]

FLOOD_S = 120
PODS = 4
PORTS = (8080, 8081, 8443)
MOST_RATIO = 1.2
"""A job of another namespace takes at most this much of its time beside honest requests."""
TEXT = harness.text(4_000_000)
SCRIPT = """
import asyncio, contextlib, json, socket, ssl, sys, threading, time

mode, seconds, targets = sys.argv[1], float(sys.argv[2]), [t.split(":") for t in sys.argv[3].split(",")]
clients = {"honest": 1, "flood": 30}[mode]
more = {"honest": (), "flood": [b"X-%d: %08000d\\r\\n" % (n, 0) for n in range(128)]}[mode]
trusting = ssl.create_default_context()
trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
seen = {"opened": 0, "answers": {}}

async def client(address, port):
    tls = trusting if port == "8443" else None
    while True:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection(address, int(port), ssl=tls)
            # what the server does not read stays in the kernel, and counts as this pod's memory
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
            seen["opened"] += 1
            try:
                path = {"8080": b"/metrics", "8081": b"/healthz"}.get(port, b"/v1/jobs/a/b/plan")
                writer.write(b"GET " + path + b" HTTP/1.1\\r\\nHost: x\\r\\n")
                async with asyncio.timeout(10):
                    for header in more:  # what the server does not take is not kept here: the pod has 512 MiB
                        writer.write(header)
                        await writer.drain()
                if mode == "honest":
                    writer.write(b"\\r\\n")
                async with asyncio.timeout(10):
                    words = (await reader.readline()).split()
                answer = words[1].decode() if len(words) > 1 else "none"
                seen["answers"][answer] = seen["answers"].get(answer, 0) + 1
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.5 if mode == "honest" else 0)

def use_cpu():
    while True:
        sum(range(1000))

async def main():
    if mode == "honest":
        threading.Thread(target=use_cpu, daemon=True).start()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for target in targets:
                for _ in range(clients):
                    group.create_task(client(*target))
    print(json.dumps(seen))

asyncio.run(main())
"""


def operators(cluster):
    """The pods of the replicas."""
    return cluster.get("pods", "-n", install.NAMESPACE, "-l", faults.OPERATOR)["items"]


def restarts(cluster):
    """How often each replica's container has restarted, by the pod's UID."""
    return {pod["metadata"]["uid"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in operators(cluster)}


def start_pods(place, mode):
    """Start the attacker's pods; they end by themselves."""
    targets = ",".join(f"{pod['status']['podIP']}:{port}" for pod in operators(place.cluster) for port in PORTS)
    command = ["python3", "-c", SCRIPT, mode, str(FLOOD_S), targets]
    names = [f"{mode}-{number}" for number in range(PODS)]
    place.cluster.apply(*(pod(place.namespace, name, command) for name in names))
    for name in names:
        running = "--for=jsonpath={.status.phase}=Running"
        place.cluster.run("wait", f"pod/{name}", "-n", place.namespace, running, "--timeout=120s", timeout_s=130)
    return names


def pod(namespace, name, command):
    container = {
        "name": "client",
        "image": "localhost/boathouse-task:dev",
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "512Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 4242, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def job_times(place, label):
    """Run jobs one after the other while the pods run; returns their times in seconds."""
    until_s, times = time.monotonic() + FLOOD_S, []
    while not times or time.monotonic() + times[-1] < until_s:
        name = place.start(f"{label}-{len(times)}")
        job = place.succeed(name)
        assert harness.pairs(place.parts(name)) == harness.counted(TEXT)
        times.append(job.completed_s - job.created_s)
    return times


def results(place, pods):
    """What the pods saw, summed; waits until they end."""
    opened, answers = 0, {}
    for name in pods:
        ended = "--for=jsonpath={.status.phase}=Succeeded"
        place.cluster.run("wait", f"pod/{name}", "-n", place.namespace, ended, "--timeout=300s", timeout_s=310)
        # the lines before are asyncio's, of connections that the server closed
        seen = json.loads(place.cluster.run("logs", name, "-n", place.namespace, "--tail=1"))
        opened += seen["opened"]
        for status, count in seen["answers"].items():
            answers[status] = answers.get(status, 0) + count
    return opened, answers


def test_a_flood_of_headers_on_all_ports_restarts_nothing_and_delays_no_other_namespace(place, other_place):
    cluster = place.cluster
    place.put("in/a.txt", TEXT)
    replicas.wait_for_both(cluster)
    before, epoch = restarts(cluster), faults.epoch(cluster)
    times, seen = {}, {}
    for mode in ("honest", "flood"):
        pods = start_pods(other_place, mode)
        times[mode] = job_times(place, mode)
        seen[mode] = results(other_place, pods)
    ratio = statistics.median(times["flood"]) / statistics.median(times["honest"])
    print(json.dumps({"job_s": times, "clients": seen, "ratio": ratio}))
    # pods reach 8443 alone: the chart's NetworkPolicies close the other ports where they are enforced
    assert seen["honest"][1].get("404", 0) > 0, seen
    assert seen["flood"][0] > 10 * PODS, seen
    assert restarts(cluster) == before
    assert faults.epoch(cluster) == epoch
    assert ratio <= MOST_RATIO, times
