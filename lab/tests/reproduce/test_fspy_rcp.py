"""Eq. 11 and the segments of the trace."""

import collections
import itertools
import math
from pathlib import Path

import pytest

from boathouse_lab.reproduce import fspy_rcp as rcp
from boathouse_sim import swim

TRACE = Path(__file__).resolve().parents[3] / "data" / "traces" / "FB-2009_samples_24_times_1hr_0.tsv"


def trace_loads() -> list[float]:
    jobs = swim.read_swim(TRACE)
    found = []
    for segment in rcp.segments(len(jobs)):
        part = [jobs[i] for i in segment]
        sizes = [job.map_input_bytes + 5 * job.shuffle_bytes + job.reduce_output_bytes for job in part]
        gaps = [b.submit_s - a.submit_s for a, b in itertools.pairwise(part)]
        found.append(rcp.load(sizes, gaps, cluster=64 * 10e6))
    return found


def test_the_trace_has_37_segments_of_200_that_overlap_by_50():
    found = rcp.segments(5894)
    assert (len(found), found[0], found[1], found[-1]) == (37, range(200), range(150, 350), range(5400, 5600))
    assert len(rcp.segments(5894, most=99)) == 38


def test_pressure_is_the_logarithm_of_work_over_what_the_cluster_does():
    assert rcp.load([30, 50], [2, 3], 8) == 2
    assert rcp.Scale(alpha=2, beta=5).rcp(math.e) == 7
    assert [rcp.Scale(alpha=1, beta=5).group(math.exp(x)) for x in (-0.6, -0.5, 0.49, 0.5)] == [4, 5, 5, 6]


def test_jobs_that_come_at_once_have_no_pressure():
    with pytest.raises(ValueError, match="at once"):
        rcp.load([1], [0], 8)


def test_the_fit_finds_the_groups_that_the_paper_counts():
    counts = {2: 1, 3: 3, 4: 5, 5: 9, 6: 8, 7: 7, 8: 4}
    found = [math.exp((group + 0.02 * i - 3) / 1.7) for group, count in counts.items() for i in range(count)]
    assert groups_of(found) == counts


def test_on_the_trace_the_fit_gives_the_number_of_groups_and_of_loaded_segments():
    """With sizes in bytes the largest group is 6, the paper's is 5: its sizes are not known."""
    groups = groups_of(trace_loads())
    assert sum(count for group, count in groups.items() if group >= 6) == 19
    assert (len(groups), groups.most_common(1)[0][0]) == (7, 6)


def groups_of(found: list[float]) -> collections.Counter[int]:
    scale = rcp.fit_scale(found)
    return collections.Counter(scale.group(load) for load in found)


def test_a_fit_needs_enough_segments():
    with pytest.raises(ValueError, match="more than 19"):
        rcp.fit_scale([1.0] * 19)
