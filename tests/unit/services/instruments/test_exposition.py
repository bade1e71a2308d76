"""Metrics of kubelets, recorded and malformed."""

import pytest

from boathouse.services.instruments import counters
from tests.builders.kubelet_metrics import recorded_metrics

NODE = b"# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total %s\n"
POD = b'pod_cpu_usage_seconds_total{namespace="a",pod="p-%d"} %s\n'
FS = b'\ncontainer_fs_reads_bytes_total{container="",device="%s",id="%s"} %s\n'


def node_usage(rest=b"", cpu=b"1.5 1000"):
    return counters.node_usage(NODE % cpu + rest)


def pods_cpu_s(*values):
    lines = b"".join(POD % pair for pair in enumerate(values))
    return list(node_usage(b"# TYPE pod_cpu_usage_seconds_total counter\n" + lines).pods_cpu_s)


def test_a_recorded_response_has_the_cpu_of_the_node_and_its_pods():
    sample = counters.node_usage(recorded_metrics("resource-1"))
    assert sample.cpu == counters.Counter(111761.751969887, 1795427337417)
    assert list(sample.pods_cpu_s) == [0, 41.5, 12.25]
    assert sample.pods_at_ms[0] == 1795427346673
    assert len(set(sample.pods)) == 3


def test_a_pod_is_recognized_in_the_next_response():
    first, second = (counters.node_usage(recorded_metrics(f"resource-{number}")) for number in (1, 2))
    assert [pod in first.pods for pod in second.pods] == [True, True, False]


@pytest.mark.parametrize(
    "cpu",
    [b"NaN 1000", b"-1 1000", b"+Inf 1000", b"1e300 1000", b"1.5", b"1.5 0", b"1.5 99999999999999999", b"x 1000", b""],
)
def test_a_response_with_an_invalid_sample_of_the_node_is_ignored(cpu):
    assert node_usage(cpu=cpu) is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"\x00" * 100, b"node_cpu_usage_seconds_total 1 1"])
def test_a_response_of_another_kind_is_ignored(body):
    assert counters.node_usage(body) is None


def test_an_invalid_sample_of_a_pod_costs_that_pod_only():
    assert pods_cpu_s(b"1 1", b"NaN 1", b"-1 1", b"2 1", b"1 -1", b"3") == [1, 2]


def test_more_pods_than_a_node_can_have_are_not_read():
    assert len(pods_cpu_s(*[b"1 1"] * 3000)) == counters.MOST_PODS


@pytest.mark.parametrize(
    "unit", [b"\npod_cpu_usage_seconds_total{", b'id="/"', b'\nid="/"', b"pod_cpu_usage_seconds_total{ "]
)
def test_a_response_of_the_largest_size_is_read_in_linear_time(unit):
    heads = NODE % b"1 1", b"\npod_cpu_usage_seconds_total{", b"\ncontainer_fs_reads_bytes_total{"
    body = b"".join(head + unit * (2**20 // len(unit)) for head in heads)
    assert counters.node_usage(body) is not None
    assert counters.cadvisor_usage(body) is None


def test_a_recorded_response_of_cadvisor_has_the_disks_and_pressure_of_the_node():
    sample = counters.cadvisor_usage(recorded_metrics("cadvisor-v2-1"))
    assert sample.disk_bytes == counters.Counter(4.194304e9 + 1.048576e9 + 10e9, 1795427337517)
    assert {resource: counter.value for resource, counter in sample.waited_s.items()} == {
        "cpu": 812.5,
        "io": 301.25,
        "memory": 4.5,
    }


def test_only_the_root_control_group_counts():
    assert counters.cadvisor_usage(FS % (b"/dev/sda", b"/kubepods", b"5 1")) is None


def test_a_response_without_disks_has_pressure():
    sample = counters.cadvisor_usage(b'\ncontainer_pressure_io_waiting_seconds_total{container="",id="/"} 2 7\n')
    assert sample == counters.DiskSample(disk_bytes=None, waited_s={"io": counters.Counter(2, 7)})


def test_a_disk_that_is_mapped_to_another_counts_once():
    lines = b"".join(
        b'container_fs_reads_bytes_total{device="/dev/%s",id="/"} 5 1\n' % device
        for device in (b"dm-3", b"sda", b"loop1")
    )
    assert counters.cadvisor_usage(b"\n" + lines).disk_bytes.value == 5
