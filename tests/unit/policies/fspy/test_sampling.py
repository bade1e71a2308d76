"""Algorithm 1: what a probing job reads."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from boathouse_policies.fspy import prediction


def probe_sample(split_bytes, reducers=1, most_splits=10, seed=1):
    return prediction.sample(split_bytes, reducers=reducers, most_splits=most_splits, rng=np.random.default_rng(seed))


def test_a_probe_reads_one_tasks_worth_from_a_few_splits():
    found = probe_sample([6400] * 40)
    assert len(found.parts) == 10
    assert {count for _, count in found.parts} == {640}
    assert found.fraction == 1 / 40


def test_many_reducers_make_the_sample_smaller():
    assert probe_sample([6400] * 40, reducers=80).fraction == 1 / 80


def test_a_job_of_few_splits_is_sampled_from_all():
    found = probe_sample([300] * 3)
    assert sorted(found.parts) == [(0, 100), (1, 100), (2, 100)]
    assert found.fraction == 1 / 3


def test_no_split_is_read_twice_and_seeds_choose():
    parts = [split for split, _ in probe_sample([100] * 50).parts]
    assert len(set(parts)) == 10
    assert parts == [split for split, _ in probe_sample([100] * 50).parts]
    assert parts != [split for split, _ in probe_sample([100] * 50, seed=2).parts]


def test_every_split_is_as_likely_as_every_other():
    rng, times = np.random.default_rng(5), np.zeros(12)
    for _ in range(3000):
        for split, _ in prediction.sample([100] * 12, reducers=1, most_splits=3, rng=rng).parts:
            times[split] += 1
    assert times == pytest.approx([750] * 12, rel=0.15)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(0, 90), st.integers(1, 20))
def test_the_fraction_is_what_was_really_read(split_bytes, reducers, most_splits):
    found = probe_sample(split_bytes, reducers, most_splits)
    read = sum(count for _, count in found.parts)
    assert all(0 <= count <= split_bytes[split] for split, count in found.parts)
    assert found.fraction * sum(split_bytes) == pytest.approx(read)


def test_there_must_be_something_to_sample():
    with pytest.raises(ValueError, match="at least 1 split"):
        probe_sample([])
