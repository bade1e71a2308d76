"""Run time from memory: the paper's examples, and the closed form against a scan."""

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from boathouse_policies.yarn_me import penalty

MB, GB = 1_000_000, 1_000_000_000
STEP = 100 * MB


def spilled(input_gb, buffer_gb):
    return float(penalty.spilled(input_gb * GB, np.array(buffer_gb * GB))) / GB


@pytest.mark.parametrize(("buffer_gb", "on_disk_gb"), [(0.5, 2.0), (2.0, 2.0), (1.5, 1.5), (2.01, 0.0), (3.0, 0.0)])
def test_an_input_of_2_01_gb_spills_what_the_paper_says(buffer_gb, on_disk_gb):
    assert spilled(2.01, buffer_gb) == pytest.approx(on_disk_gb)


@pytest.mark.parametrize("parts", range(1, 40))
def test_a_buffer_of_an_exact_part_spills_all_but_one_of_them(parts):
    assert spilled(2.0, 2.0 / parts) == pytest.approx(2.0 * (parts - 1) / parts)


def test_no_input_spills_nothing():
    assert spilled(0.0, 1.0) == 0.0


def sawtooth(factor=1.5, ideal_mb=2000, seconds=100.0, **fields):
    shuffled = ideal_mb * MB * penalty.BUFFER_SHARE
    rate = shuffled / (seconds * (factor - 1)) if factor > 1 else math.inf
    return penalty.Reducer(ideal_s=seconds, input_bytes=shuffled, disk_bytes_per_s=rate, **fields)


def elastic_of(model=None, ideal_mb=2000):
    return penalty.Elastic(model or sawtooth(ideal_mb=ideal_mb), ideal_bytes=ideal_mb * MB, step_bytes=STEP)


def run_time_s(estimates, memory_bytes):
    return estimates.run(memory_bytes)[0]


def test_run_time_grows_by_what_is_spilled():
    assert run_time_s(elastic_of(), 1000 * MB) == pytest.approx(
        125.0
    )  # half is spilled, and all would cost half as much again
    assert (run_time_s(elastic_of(), 2000 * MB), run_time_s(elastic_of(), 9000 * MB)) == (100.0, 100.0)


def test_more_than_a_class_asks_for_helps_no_further():
    half = penalty.Elastic(sawtooth(ideal_mb=2000), ideal_bytes=1000 * MB, step_bytes=STEP)
    assert run_time_s(half, 2000 * MB) == run_time_s(half, 1000 * MB) == pytest.approx(125.0)


def test_run_times_that_only_rounding_tells_apart_are_equal():
    # 1,200 and 1,400 MB spill seven and six buffers: 5,880 MB both.
    memory, _ = elastic_of(sawtooth(3.0, 9500), 9500).best(np.array([1531.0 * MB]))
    assert memory[0] == pytest.approx(1200 * MB)


def test_all_that_is_free_is_taken_where_it_is_the_best():
    # A third of 2,200 MB is 733: 800 on the grid is not free, and 600 makes four rounds of it.
    memory, _ = elastic_of(ideal_mb=2200).best(np.array([749.0 * MB]))
    assert memory[0] == 749 * MB


def test_less_memory_may_be_faster():
    assert run_time_s(elastic_of(), 1000 * MB) < run_time_s(elastic_of(), 1900 * MB)


def test_the_disk_bandwidth_is_what_is_written_and_read_over_the_run_time():
    estimates = elastic_of()
    assert estimates.disk_bytes_per_s(1000 * MB) == pytest.approx(2 * 700 * MB / 125.0)
    assert estimates.disk_bytes_per_s(2000 * MB) == 0.0


def scan(estimates, free):
    """As one would write it: every size on the grid below what is free, and that."""
    sizes = [*range(estimates.least_bytes, min(free, estimates.ideal_bytes), STEP), min(free, estimates.ideal_bytes)]
    return min(sizes, key=lambda size: (round(run_time_s(estimates, size), 9), size))


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(
    ideal_mb=st.integers(1, 120).map(lambda steps: steps * 100),
    share=st.floats(0, 1),
    factor=st.sampled_from([1.0, 1.2, 1.5, 3.0]),
    is_map=st.booleans(),
)
def test_the_closed_form_finds_what_a_scan_of_all_sizes_finds(ideal_mb, share, factor, is_map):
    model = sawtooth(factor, ideal_mb)
    if is_map:
        model = penalty.Mapper(ideal_s=100.0, ideal_bytes=ideal_mb * MB, undersized_s=100.0 * factor)
    estimates = elastic_of(model, ideal_mb)
    free = estimates.least_bytes + round((estimates.ideal_bytes - estimates.least_bytes) * share)
    memory, least_s = estimates.best(np.array([free]))
    expected = scan(estimates, free)
    assert least_s[0] == pytest.approx(run_time_s(estimates, expected))
    assert memory[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ideal_mb", "share", "least_mb"), [(2000, 0.1, 200), (500, 0.1, 100), (50, 0.1, 50), (1500, 0.5, 800)]
)
def test_the_least_size_is_a_tenth_of_the_ideal_in_whole_steps_and_at_most_the_ideal(ideal_mb, share, least_mb):
    estimates = penalty.Elastic(
        sawtooth(ideal_mb=ideal_mb), ideal_bytes=ideal_mb * MB, step_bytes=STEP, least_share=share
    )
    assert estimates.least_bytes == least_mb * MB


@pytest.mark.parametrize(
    ("free_mb", "expected"),
    [
        pytest.param(199, (200, math.inf), id="less than a tenth of the ideal"),
        pytest.param(1399, (1000, 125.0), id="between two steps"),
        pytest.param(1999, (1000, 125.0), id="less than the ideal"),
        pytest.param(9000, (2000, 100.0), id="more than the ideal"),
    ],
)
def test_the_levels_hold_the_closed_form_for_each_step(free_mb, expected):
    levels = elastic_of().levels
    memory, least_s = levels.on(free_mb * MB)
    assert (memory / MB, least_s) == (expected[0], pytest.approx(expected[1]))
    assert levels.seconds_on(np.array([free_mb * MB])).tolist() == [least_s]


def test_a_node_that_is_over_committed_has_no_memory_for_any_level():
    assert elastic_of().levels.on(-5) == elastic_of().levels.on(0)


def test_a_mapper_is_a_step():
    mapper = penalty.Mapper(ideal_s=10.0, ideal_bytes=1000 * MB, undersized_s=13.5, output_bytes=500 * MB)
    assert mapper.run_time_s(np.array([100.0, 999.0, 1000.0]) * MB).tolist() == [13.5, 13.5, 10.0]
    assert mapper.spilled_bytes(np.array([100.0, 1000.0]) * MB).tolist() == [500 * MB, 0.0]
