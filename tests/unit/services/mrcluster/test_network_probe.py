"""Probes of canaries on the loopback interface."""

import asyncio
import socket

import pytest

from boathouse.resources.mrcluster.names import Reason
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster import network_probe
from boathouse.services.mrcluster.network_probe import EVERY_S, NetworkProbe
from boathouse_task.agent.agent import Canary

UID = ObjectUid("u-1")


class Probing:
    """Clusters' canaries with their controls, and a clock."""

    def __init__(self, canary, control):
        self.now_s = 0.0
        self.targets = {UID: "127.0.0.1"}
        self.marked = []
        self.probe = NetworkProbe(
            lambda: self.targets,
            self.marked.append,
            canary=canary,
            control=control,
            monotonic=lambda: self.now_s,
        )

    async def run(self, after_s=0.0):
        self.now_s += after_s
        await self.probe.run_once()
        return self.probe.finding(UID)


@pytest.fixture
def canary():
    listening = Canary(0)
    yield listening
    listening.close()


@pytest.fixture
def control():
    listening = Canary(0)
    yield listening
    listening.close()


@pytest.fixture
def closed_port():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_a_connection_that_succeeds_shows_that_policies_are_not_enforced(canary, closed_port, address):
    probing = Probing(canary.port, closed_port)
    probing.targets = {UID: address}
    assert probing.probe.finding(UID) is None
    assert await probing.run() is Reason.NOT_ENFORCED
    assert probing.marked == [UID]


async def test_a_refused_connection_beside_one_that_succeeds_shows_that_policies_are_enforced(closed_port, control):
    assert await Probing(closed_port, control.port).run() is Reason.ENFORCED


async def test_a_connection_without_a_response_beside_one_that_succeeds_shows_it_too(canary, control, monkeypatch):
    connects = network_probe._connects

    async def slow(address, port):
        with monkeypatch.context() as patch:
            if port == canary.port:
                patch.setattr(network_probe, "TIMEOUT_S", 0.0)
            return await connects(address, port)

    monkeypatch.setattr(network_probe, "_connects", slow)
    assert await Probing(canary.port, control.port).run() is Reason.ENFORCED


async def test_two_connections_that_fail_show_nothing_until_one_succeeds(closed_port, control):
    probing = Probing(closed_port, closed_port)
    assert await probing.run() is Reason.CANNOT_TELL
    probing.probe._control = control.port
    assert await probing.run(1) is Reason.ENFORCED
    assert probing.marked == [UID, UID]


@pytest.mark.parametrize("address", ["", "localhost", "255.255.255.255"])
async def test_an_error_of_this_host_shows_nothing(canary, control, address):
    probing = Probing(canary.port, control.port)
    probing.targets = {UID: address}
    assert await probing.run() is Reason.CANNOT_TELL


async def test_a_cluster_is_probed_again_when_it_is_due_or_has_another_address(canary, control):
    probing = Probing(canary.port, control.port)
    await probing.run()
    canary.close()
    assert await probing.run(EVERY_S - 1) is Reason.NOT_ENFORCED
    assert await probing.run(1) is Reason.ENFORCED
    assert probing.marked == [UID, UID]
    probing.targets = {UID: ""}
    assert await probing.run() is Reason.CANNOT_TELL


async def test_a_result_ends_with_its_target(canary, control):
    probing = Probing(canary.port, control.port)
    await probing.run()
    probing.targets = {}
    assert await probing.run() is None
    assert probing.marked == [UID, UID]


async def test_few_connections_are_open_at_once(monkeypatch):
    probing = Probing(1, 2)
    probing.targets = {ObjectUid(f"u-{number}"): "127.0.0.1" for number in range(50)}
    now, most = 0, 0

    async def connects(_address, _port):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return True

    monkeypatch.setattr(network_probe, "_connects", connects)
    await probing.run()
    assert (most, len(probing.marked)) == (network_probe.AT_ONCE, 50)
