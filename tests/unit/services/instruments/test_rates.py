"""What nodes use, from two samples."""

import array

import pytest

from boathouse.services.instruments import counters
from tests.builders.kubelet_metrics import recorded_metrics


def resource_sample(cpu_s, at_ms, **pods):
    names = sorted(pods)
    return counters.NodeSample(
        cpu=counters.Counter(cpu_s, at_ms),
        pods=array.array("q", map(hash, names)),
        pods_cpu_s=array.array("d", [pods[name][0] for name in names]),
        pods_at_ms=array.array("q", [pods[name][1] for name in names]),
    )


def usage_of(*samples, cpu_of_pods=False):
    """Return the usage at the last of the samples."""
    measure = counters.Rates(cpu_of_pods=cpu_of_pods)
    *_, last = [measure.cpu("n", sample) for sample in samples]
    return last


def recorded_samples(name, read=counters.node_usage):
    return [read(recorded_metrics(f"{name}-{number}")) for number in (1, 2)]


def test_recorded_answers_have_a_usage():
    usage = usage_of(*recorded_samples("resource"))
    assert usage["cpu_cores"] == pytest.approx(39 / 12)
    assert usage["system_cpu_cores"] == pytest.approx(39 / 12 - 0.005 / 12 - 20 / 10 - 6 / 9)


def test_the_sum_of_the_pods_may_stand_for_the_node():
    usage = usage_of(*recorded_samples("resource"), cpu_of_pods=True)
    assert usage == {"cpu_cores": pytest.approx(0.005 / 12 + 20 / 10 + 6 / 9)}


def test_the_first_sample_has_no_usage():
    assert usage_of(resource_sample(5, 1000)) is None


def test_a_sample_that_was_not_measured_again_has_no_usage_and_loses_none():
    first, second = resource_sample(5, 1000), resource_sample(8, 2000)
    assert usage_of(first, second, second) is None
    assert usage_of(first, first, second)["cpu_cores"] == 3


@pytest.mark.parametrize("after", [resource_sample(4, 2000), resource_sample(9, 500)], ids=["value", "time"])
def test_a_counter_that_falls_starts_again(after):
    assert usage_of(resource_sample(5, 1000), after) is None
    assert (
        usage_of(resource_sample(5, 1000), after, resource_sample(after.cpu.value + 2, after.cpu.at_ms + 1000))[
            "cpu_cores"
        ]
        == 2
    )


def test_an_impossible_usage_of_a_node_is_ignored():
    assert usage_of(resource_sample(0, 1000), resource_sample(1e9, 2000)) is None


def test_a_pod_that_ended_takes_nothing_from_the_others():
    usage = usage_of(resource_sample(0, 1000, a=(100, 1000), b=(50, 1000)), resource_sample(3, 2000, b=(51, 2000)))
    assert usage["system_cpu_cores"] == 2


def test_a_pod_that_was_not_measured_again_uses_what_it_did():
    before = [resource_sample(0, 1000, a=(0, 1000)), resource_sample(4, 2000, a=(1, 2000))]
    assert usage_of(*before, resource_sample(8, 3000, a=(1, 2000)))["system_cpu_cores"] == 3


def test_pods_that_use_more_than_their_node_leave_nothing_to_the_system():
    assert (
        usage_of(resource_sample(0, 1000, a=(0, 1000)), resource_sample(1, 2000, a=(5, 2000)))["system_cpu_cores"] == 0
    )


def test_recorded_responses_of_cadvisor_have_disk_and_pressure():
    measure = counters.Rates(cpu_of_pods=False)
    first, second = recorded_samples("cadvisor-v2", counters.cadvisor_usage)
    assert measure.disks("n", first) == {}
    assert measure.disks("n", second) == {
        "disk_bytes_per_s": pytest.approx((0.21e9 + 0.6e9) / 10),
        "cpu_pressure": pytest.approx(0.2),
        "io_pressure": pytest.approx(0.5),
        "memory_pressure": 0.0,
    }


def test_a_forgotten_node_starts_again():
    measure = counters.Rates(cpu_of_pods=False)
    measure.cpu("n", resource_sample(5, 1000))
    measure.forget("n")
    assert measure.cpu("n", resource_sample(6, 2000)) is None
