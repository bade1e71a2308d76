"""Nodes are measured by their kubelets, whose addresses and token come from the API server."""

import asyncio
import contextlib
import datetime as dt
import time

import pytest

from boathouse.resources.config import OperatorConfig
from boathouse.resources.names import Reason
from boathouse.services.instruments import poller, wiring
from boathouse.services.progress import certificates
from boathouse_policies import framework
from tests.builders import manifests
from tests.builders.operators import schedulers
from tests.wire.test_kubelet_client import Kubelet

pytestmark = pytest.mark.usefixtures("often")

NOW = dt.datetime.now(dt.UTC)
ANSWER = "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total {} {:.0f}\n"


class BusyKubelet(Kubelet):
    """The kubelet of a node that uses two CPUs, until it is silent."""

    silent = False

    async def connected(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while not self.silent:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                body = ANSWER.format(2 * time.time(), 1000 * time.time())
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.transport.abort()


class Recorder(framework.Observer):
    """Requests measurements, and keeps them."""

    measure_every_s = 0.01

    def __init__(self):
        self.usages = []

    def observe(self, event):
        self.usages.append((event.name, event.usage))


def node(port):
    made = manifests.node("n1")
    made["status"]["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
    made["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
    return made


@pytest.fixture
async def kubelet():
    made, authority = BusyKubelet(), certificates.authority(None, "kubelet", NOW)
    context = certificates.server_context(authority, ["127.0.0.1"], NOW)
    listening = await asyncio.start_server(made.connected, "127.0.0.1", 0, ssl=context)
    made.port, made.authority, made.listening = listening.sockets[0].getsockname()[1], authority, listening
    async with listening:
        yield made


@pytest.fixture
def often(monkeypatch):
    """Nodes are read many times a second."""
    frequent = {"interval_s": 0.05, "port": 0, "cadvisor": False}
    monkeypatch.setattr(poller, "ROUND_S", 0.01)
    monkeypatch.setattr(wiring, "Poller", lambda *parts, **options: poller.Poller(*parts, **options | frequent))


@contextlib.asynccontextmanager
async def measuring(api, tmp_path, kubelet):
    """Run the reads of kubelets; yields the signals and the observer."""
    ca_file, recorder, built = tmp_path / "ca.crt", Recorder(), []
    ca_file.write_text(kubelet.authority.pem)
    config = OperatorConfig(signals={"kubelets": {"enabled": True, "ca_file": str(ca_file)}})
    api.add(node(kubelet.port))

    def prepare(below, client):
        built.append(wiring.build(client, config, recorder, below.parts, below.figures))

    async with schedulers.scheduling(api, config=config, prepare=prepare):
        signals, (polling,) = built[0]
        task = asyncio.create_task(polling.run())
        yield signals, recorder
        await schedulers.stop(task)


async def test_what_a_node_uses_reaches_the_policies(api, tmp_path, kubelet, eventually):
    async with measuring(api, tmp_path, kubelet) as (signals, recorder):
        await eventually(lambda: len(recorder.usages) > 3)
    assert {name for name, _ in recorder.usages} == {"n1"}
    assert recorder.usages[2][1]["cpu_cores"] == pytest.approx(2, rel=0.1)
    assert b"Bearer token-of-boathouse-system/boathouse-signals\r\n" in kubelet.requests[0]
    assert signals.problem is None


async def test_a_kubelet_that_falls_silent_is_no_signal_any_more(api, tmp_path, kubelet, eventually):
    async with measuring(api, tmp_path, kubelet) as (signals, recorder):
        await eventually(lambda: recorder.usages)
        kubelet.silent = True
        kubelet.listening.close()
        await eventually(lambda: recorder.usages[-1] == ("n1", {}))
        await eventually(lambda: signals.problem is not None)
    assert signals.problem.reason == Reason.KUBELETS_FAILING
