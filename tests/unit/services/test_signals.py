"""Reports and results in the names and units of the policies."""

import pytest

from boathouse.services.mrjob import results
from boathouse_task import contract
from boathouse_task.contract import TaskReport, TaskType

MIB = 1 << 20


def result_with(**counters):
    return contract.TaskResult(outcome="succeeded", counters={"g": counters})


@pytest.mark.parametrize(
    ("phase", "done", "known_as"),
    [
        ("start", 0, "shuffle"),
        ("wait", 2, "shuffle"),
        ("wait", 3, "merge"),
        ("shuffle", 3, "merge"),
        ("reduce", 3, "reduce"),
    ],
)
def test_a_reduce_shuffles_while_it_lacks_map_output(phase, done, known_as):
    report = TaskReport(phase=phase, maps_done=done, maps_total=3)
    assert results.signal(TaskType.REDUCE, report, cpu_milli=100, split_bytes=0).phase == known_as


def test_a_reduce_has_its_expected_input_and_the_progress_of_its_phase():
    report = TaskReport(phase="wait", progress=0.25, maps_done=1, maps_total=4, bytes_in=10)
    figures = results.signal(TaskType.REDUCE, report, cpu_milli=100, split_bytes=0).counters
    assert (figures["input_bytes"], figures["copied_bytes"], figures["maps_fraction"]) == (40, 10, 0.25)
    assert figures["phase_fraction"] == 0.75


def test_a_map_has_the_size_of_its_split():
    figures = results.signal(TaskType.MAP, TaskReport(phase="read", progress=0.5), cpu_milli=250, split_bytes=64)
    assert (figures.phase, figures.fraction, figures.counters["input_bytes"], figures.counters["cpu_milli"]) == (
        "read",
        0.5,
        64,
        250,
    )


def test_the_rate_of_the_disk_is_measured_by_spills_that_are_large_enough():
    figures = results.flat_counters(
        result_with(**{"Spilled bytes": 32 * MIB, "Spill milliseconds": 500}), has_local_input=False
    )
    assert figures["spill_bytes_per_s"] == 128 * MIB
    for spilled, spent_ms in ((15 * MIB, 500), (32 * MIB, 0)):
        little = result_with(**{"Spilled bytes": spilled, "Spill milliseconds": spent_ms})
        assert "spill_bytes_per_s" not in results.flat_counters(little, has_local_input=False)


def test_only_volumes_are_read_from_disks():
    read = result_with(**{"Bytes Read": 5, "Bytes Written": 7})
    assert "read_bytes" not in results.flat_counters(read, has_local_input=False)
    local = results.flat_counters(read, has_local_input=True)
    assert (local["read_bytes"], local["written_bytes"], local["Bytes Read"]) == (5, 7, 5)


def test_a_probe_has_its_sampled_fraction_and_the_times_of_the_functions():
    probed = result_with(**{"Sampled bytes": 10, "Map function milliseconds": 1500, "Reduce function milliseconds": 0})
    figures = results.flat_counters(probed, has_local_input=False, whole_bytes=40)
    assert (figures["Sampled fraction"], figures["Map function seconds"], figures["Reduce function seconds"]) == (
        0.25,
        1.5,
        0.0,
    )
