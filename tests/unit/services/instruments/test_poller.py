"""When the poller reads which nodes, and what it publishes."""

import asyncio
import collections

import pytest

from boathouse.cluster import errors, store, wire
from boathouse.services.instruments import counters, poller
from boathouse.services.instruments.kubelet_client import ReadError, Result
from boathouse.services.instruments.poller import UNCHANGED, Signals

EXPOSITION = b"# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total %f %d\n"
PRESSURE = b'# TYPE\ncontainer_pressure_io_waiting_seconds_total{container="",id="/"} %f %d\n'


class Middle:
    """Jitter that is always in the middle."""

    def uniform(self, low, high):
        return (low + high) / 2


class Kubelets:
    """Kubelets that use half a CPU each; `responses` has the response or the error of an address instead."""

    def __init__(self, clock):
        self.clock, self.responses, self.reads, self.most, self.active = clock, {}, [], 0, 0

    def refresh(self, nodes):
        assert nodes

    async def get(self, address, port, path, *, token, limit_bytes):
        assert limit_bytes in {poller.RESOURCE_BYTES, poller.CADVISOR_BYTES}
        self.reads.append((address, port, path, token))
        self.active += 1
        self.most = max(self.most, self.active)
        await asyncio.sleep(0)
        self.active -= 1
        response = self.responses.get(address)
        if isinstance(response, Exception):
            raise response
        now_s = self.clock[0]
        form = EXPOSITION if path == poller.RESOURCE_PATH else PRESSURE
        return form % (now_s / 2, now_s * 1000) if response is None else response


class Token:
    """A token, or the error of its creation."""

    def __init__(self):
        self.error, self.rejected = None, 0

    async def current(self):
        if self.error:
            raise self.error
        return "secret"

    def reject(self):
        self.rejected += 1


class Polling:
    """A poller with its kubelets, on a clock of its own."""

    def __init__(self, **options):
        self.clock = [10_000.0]
        self.kubelets, self.token = Kubelets(self.clock), Token()
        self.published, self.counted = [], collections.Counter()
        self.poller = poller.Poller(
            self.kubelets,
            self.token,
            counters.Rates(cpu_of_pods=False),
            lambda name, usage: self.published.append((name, dict(usage))),
            Signals(),
            **{"interval_s": 10.0, "port": 0, "cadvisor": False} | options,
            count=lambda result, _: self.counted.update([result]),
            monotonic=lambda: self.clock[0],
            jitter=Middle(),
        )

    def add(self, name, address="10.0.0.1", port=10250, ready="True", kind="InternalIP"):
        view = wire.NodeView(
            metadata=wire.ObjectMeta(name=name),
            status=wire.NodeStatus(
                conditions=(wire.Condition(type="Ready", status=ready),),
                addresses=(wire.NodeAddress(type=kind, address=address),),
                daemon_endpoints=wire.DaemonEndpoints(kubelet_endpoint=wire.DaemonEndpoint(port=port)),
            ),
        )
        self.poller.on_node(store.Added(key=name, new=view))
        return view

    async def run(self, seconds):
        for _ in range(seconds):
            self.clock[0] += 1
            await self.poller.run_once()


@pytest.fixture
def polling():
    return Polling()


async def test_a_node_is_read_once_in_an_interval_at_its_own_address_with_the_token(polling):
    polling.add("n", "10.0.0.7", 10255)
    await polling.run(36)
    assert polling.kubelets.reads == [("10.0.0.7", 10255, "/metrics/resource", "secret")] * 4


async def test_the_usage_of_a_node_is_published_from_the_second_read_on(polling):
    polling.add("n")
    await polling.run(36)
    assert polling.published == [("n", {"cpu_cores": 0.5, "system_cpu_cores": 0.5})] * 3
    assert polling.poller.status().nodes["fresh"] == 1


async def test_cadvisor_is_read_too_where_it_is_switched_on():
    polling = Polling(cadvisor=True)
    polling.add("n")
    await polling.run(16)
    assert polling.published == [("n", {"cpu_cores": 0.5, "system_cpu_cores": 0.5, "io_pressure": 0.5})]


async def test_the_port_of_the_settings_overrides_that_of_the_node():
    polling = Polling(port=1234)
    polling.add("n", port=0)
    await polling.run(6)
    assert polling.kubelets.reads[0][1] == 1234


@pytest.mark.parametrize(
    "address", ["", "example.com", "10.0.0.1/../", "169.254.169.254", "224.0.0.1", "0.0.0.0", "::"]
)
async def test_an_address_that_no_kubelet_can_have_gets_no_request(polling, address):
    polling.add("n", address)
    await polling.run(6)
    assert polling.kubelets.reads == []
    assert polling.poller.status().failures == {"no_address": 1}


async def test_an_external_address_gets_no_request(polling):
    polling.add("n", kind="ExternalIP")
    await polling.run(6)
    assert polling.counted == {Result.NO_ADDRESS: 1}


async def test_nodes_that_are_not_ready_or_gone_are_not_read(polling):
    polling.add("unready", ready="Unknown")
    gone = polling.add("gone")
    polling.poller.on_node(store.Deleted(key="gone", old=gone, final=None))
    await polling.run(20)
    assert polling.kubelets.reads == []


async def test_a_node_that_fails_is_read_less_and_less_often(polling):
    polling.add("n")
    polling.kubelets.responses["10.0.0.1"] = ReadError(Result.TIMEOUT, "silent")
    await polling.run(600)
    assert 5 <= len(polling.kubelets.reads) <= 8
    assert polling.poller.status().failures == {"timeout": 1}


async def test_of_many_nodes_that_fail_at_once_one_is_logged(polling, monkeypatch):
    logged = []
    monkeypatch.setattr(poller._log, "warning", lambda *_, **fields: logged.append(fields["node"]))
    for number in range(100):
        polling.add(f"n{number}", "nowhere")
    await polling.run(20)
    assert 1 <= len(logged) <= 2


async def test_a_node_that_responds_again_is_read_as_before(polling):
    polling.add("n")
    polling.kubelets.responses["10.0.0.1"] = ReadError(Result.TIMEOUT, "silent")
    await polling.run(30)
    del polling.kubelets.responses["10.0.0.1"]
    await polling.run(60)
    assert polling.poller.status().failures == {}
    assert len(polling.published) >= 2


async def test_a_measurement_that_is_too_old_is_withdrawn_once(polling):
    polling.add("n")
    await polling.run(16)
    polling.kubelets.responses["10.0.0.1"] = b"nonsense"
    await polling.run(100)
    assert polling.published[1:] == [("n", {})]
    assert polling.poller.status().failures == {"malformed": 1}


async def test_a_kubelet_that_measures_nothing_new_counts_as_failing_once_its_measurement_is_old(polling):
    polling.add("n1")
    polling.kubelets.responses["10.0.0.1"] = EXPOSITION % (1.0, 1000)
    await polling.run(40)
    assert (polling.poller.status().nodes["stale"], polling.poller.status().failures) == (1, {})
    await polling.run(1)
    assert polling.poller.status().failures == {UNCHANGED: 1}
    del polling.kubelets.responses["10.0.0.1"]
    await polling.run(20)
    assert (polling.poller.status().nodes["fresh"], polling.poller.status().failures) == (1, {})


async def test_no_more_than_fifty_nodes_are_read_in_a_second_and_all_in_their_turn(polling):
    for number in range(1000):
        polling.add(f"n{number}", f"10.0.{number // 250}.{number % 250 + 1}")
    assert polling.poller.interval_s == 20
    polling.clock[0] += 10
    polling.poller._round_s = polling.clock[0]
    for second in range(1, 21):
        await polling.run(1)
        assert len(polling.kubelets.reads) <= 50 * second
    assert len(set(polling.kubelets.reads)) == 1000
    assert polling.kubelets.most <= poller.AT_ONCE


async def test_a_round_without_a_token_reads_nothing_and_says_why(polling):
    polling.add("n")
    polling.token.error = errors.Forbidden(403, "Forbidden", "may not create tokens")
    with pytest.raises(errors.Forbidden):
        await polling.run(6)
    assert "may not create tokens" in polling.poller.status().problem().message
    polling.token.error = None
    await polling.run(1)
    assert polling.poller.status().error == ""


async def test_a_kubelet_that_refuses_the_token_has_it_renewed(polling):
    polling.add("n")
    polling.kubelets.responses["10.0.0.1"] = ReadError(Result.UNAUTHORIZED, "401")
    await polling.run(6)
    assert polling.token.rejected == 1
