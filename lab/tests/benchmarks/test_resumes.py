"""The benchmark of resumed reduces: a round of it, and what it prints."""

import pytest

from benchmarks import resumes


async def test_a_round_takes_the_time_of_both_ways():
    took_s = await resumes.measure(1, 0.0)
    assert all(len(times_s) == 1 and times_s[0] > 0 for times_s in took_s.values())


@pytest.mark.parametrize(("median_s", "within"), [(0.5, "within"), (0.6, "ABOVE")])
def test_the_report_says_whether_the_median_is_within_the_limit(median_s, within):
    (line,) = resumes.report({"resumed": [median_s] * 3})
    assert line == f"resumed: 3 times, median {median_s:.3f} s, {within} 0.5 s, p99 {median_s:.3f} s"
