"""Sizes and average parallelism bounds: eqs 3, 4, 5 and 9."""

import pytest
from hypothesis import given, strategies as st

from boathouse_policies.fspy import jobs as shapes
from boathouse_policies.fspy.jobs import Phase, Shape
from tests.builders import core

GIB = float(1 << 30)
CLUSTER = (8000.0, 8 * GIB)


def job_phase(tasks: int = 4, task_s: float | None = 10.0, cpu: float = 1000.0, gib: float = 1.0) -> Phase:
    return Phase(container=(cpu, gib * GIB), tasks=tasks, task_s=task_s)


def job_shape(*phases: Phase, master_gib: float = 0.0, uber: bool = False) -> Shape:
    return Shape(phases=phases, master=(1000.0 * (master_gib > 0), master_gib * GIB), uber=uber)


def test_size_is_container_times_run_time_over_all_tasks():
    assert shapes.size(job_shape(job_phase(4, 10), job_phase(2, 30, gib=2))) == (100_000, (40 + 120) * GIB)


def test_ideal_run_time_counts_waves():
    assert shapes.least_time_s(job_shape(job_phase(9, 10)), CLUSTER) == 20
    assert shapes.least_time_s(job_shape(job_phase(8, 10)), CLUSTER) == 10


def test_ideal_run_time_counts_the_waves_of_the_scarcer_resource():
    assert shapes.least_time_s(job_shape(job_phase(4, 10, cpu=1000, gib=4)), CLUSTER) == 20
    assert shapes.least_time_s(job_shape(job_phase(4, 10, cpu=6000, gib=1)), CLUSTER) == 30


def test_ideal_run_time_adds_the_phases():
    assert shapes.least_time_s(job_shape(job_phase(8, 10), job_phase(1, 7)), CLUSTER) == 17


def test_bound_is_size_over_ideal_run_time_beside_the_master():
    shape = job_shape(job_phase(9, 10), job_phase(1, 5), master_gib=0.5)
    assert shapes.parallelism(shape, CLUSTER) == (1000 + 95_000 / 25, pytest.approx((0.5 + 95 / 25) * GIB))


def test_bound_is_at_most_the_cluster():
    assert shapes.parallelism(job_shape(job_phase(80), master_gib=1), CLUSTER) == CLUSTER


def test_bound_of_a_job_of_unknown_size_is_its_maps_beside_the_master():
    shape = job_shape(job_phase(3, None), job_phase(50, None), master_gib=1)
    assert shapes.parallelism(shape, CLUSTER) == (4000, 4 * GIB)
    assert shapes.parallelism(job_shape(job_phase(300, None)), CLUSTER) == CLUSTER


def test_bound_of_an_uber_job_is_its_container():
    assert shapes.parallelism(job_shape(job_phase(1, 100, gib=3), uber=True), CLUSTER) == (1000, 3 * GIB)


def test_a_container_without_memory_counts_a_little():
    assert shapes.container(core.amount(500, 0)) == (500, 1 << 20)


def test_run_times_must_be_known_for_a_size():
    with pytest.raises(ValueError, match="is_sized"):
        shapes.size(job_shape(job_phase(task_s=None)))


def test_where_the_cluster_has_nothing_there_is_no_bound():
    assert shapes.parallelism(job_shape(job_phase()), shapes.NOTHING) == shapes.NOTHING


phases = st.builds(
    job_phase, st.integers(1, 200), st.floats(0.1, 1000), st.sampled_from([100.0, 1000.0, 3000.0]), st.floats(0.1, 8)
)


@given(st.lists(phases, min_size=1, max_size=3))
def test_work_over_ideal_run_time_never_exceeds_the_cluster(several):
    shape = job_shape(*several)
    work, time_s = shapes.size(shape), shapes.least_time_s(shape, CLUSTER)
    assert all(part / time_s <= have * (1 + 1e-6) for part, have in zip(work, CLUSTER, strict=True))
