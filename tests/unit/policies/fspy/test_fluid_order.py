"""With exact sizes on one fluid-like resource, FSPY's order is FSP's (Friedman and Henderson, 2003)."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from boathouse_sim import fluid
from tests.builders import core_fspy

workloads = st.lists(st.tuples(st.integers(0, 25), st.integers(1, 12)), min_size=1, max_size=12).map(sorted)


def ends_under_fspy(workload: list[tuple[int, int]]) -> list[float]:
    """One node that holds one task; a task is one second of work, and jobs come at whole seconds."""
    shell = core_fspy.slots_shell()
    for i, (at_s, size_s) in enumerate(workload):
        shell.submit_at(f"j{i:02}", float(at_s), core_fspy.map_stage(size_s))
    ends_s = shell.run()
    return [ends_s[f"j{i:02}"] for i in range(len(workload))]


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(workloads)
def test_jobs_end_when_fsp_ends_them(workload):
    arrivals, sizes = (np.array(column, float) for column in zip(*workload, strict=True))
    tags = sorted(fluid._processor_sharing(arrivals, sizes)[1])
    hypothesis.assume(all(b - a > 1e-6 for a, b in itertools.pairwise(tags)))  # equals may go either way
    expected = fluid.finish_s(fluid.Order.FSP, arrivals, sizes)
    assert ends_under_fspy(workload) == pytest.approx(expected.tolist())


def test_a_short_job_passes_a_long_one_and_a_longer_one_does_not():
    assert ends_under_fspy([(0, 10), (1, 2), (2, 30)]) == [12, 3, 42]


def test_a_job_with_less_left_under_processor_sharing_is_before_a_newcomer():
    # Alone for 8 s, the first has 4 of 12 left: the newcomer's 5 are fewer than 12, but not than 4.
    assert ends_under_fspy([(0, 12), (8, 5)]) == [12, 17]
