"""The line of run time by input, from sums over runs."""

import json
import math
import random

import pytest

from boathouse_policies.run_times import fit
from boathouse_policies.run_times.fit import MAX_WEIGHT, REACH, Runs, Sums

MB = 1e6
STARTS_S, S_PER_MB = 3.0, 8.5 / 256
"""Of the tasks here: 3 s for a small input, 11.5 s for one of 256 MB."""


def after(*seen: tuple[float, float]) -> Runs:
    """What is known after runs of (seconds, input in MB)."""
    (seconds, size), *others = seen
    known = Runs.first(seconds, size * MB)
    for seconds, size in others:
        known = known.after(seconds, size * MB)
    return known


def tasks(*sizes: float, noise: float = 0.0, seed: int = 1) -> list[tuple[float, float]]:
    """Runs of tasks with these inputs in MB."""
    chance = random.Random(seed)
    return [((STARTS_S + S_PER_MB * size) * chance.lognormvariate(0.0, noise), size) for size in sizes]


def mean_s(known: Runs, size: float) -> float:
    return known.estimate(size * MB).mean_s


def test_after_large_maps_a_small_one_is_no_free_lunch():
    known = after(*tasks(*[256.0] * 100))
    assert mean_s(known, 256) == pytest.approx(11.5)
    assert 1.0 < mean_s(known, 1) < 8.0  # the truth is 3; in proportion to the input it were 0.045


def test_after_one_tiny_map_a_large_one_takes_no_day():
    estimate = after((3.0, 0.01)).estimate(256 * MB)
    assert 3.0 < estimate.mean_s < 12.0  # the truth is 11.5; in proportion to the input it were 77,000
    assert estimate.deviation_s > 10 * estimate.mean_s


def test_two_sizes_give_the_line():
    known = after(*tasks(*[1.0, 256.0] * 20))
    assert [mean_s(known, size) for size in (1, 64, 256, 512)] == pytest.approx([3.03, 5.13, 11.5, 20.0], rel=0.03)


def test_thousands_of_full_blocks_leave_known_what_a_small_input_takes():
    known = after(*tasks(*[1.0] * 20, *[256.0] * 3000, noise=0.1))
    assert mean_s(known, 1) == pytest.approx(3.0, rel=0.2)
    assert mean_s(known, 256) == pytest.approx(11.5, rel=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_the_deviation_is_that_of_the_runs(seed):
    known = after(*tasks(*[64.0, 128.0, 256.0] * 60, noise=0.2, seed=seed))
    estimate = known.estimate(150 * MB)
    assert estimate.mean_s == pytest.approx(STARTS_S + S_PER_MB * 150, rel=0.1)
    assert estimate.deviation_s == pytest.approx(0.2 * estimate.mean_s, rel=0.4)
    assert estimate.runs == pytest.approx(MAX_WEIGHT)


@pytest.mark.parametrize(
    "seen",
    [
        [(20.0, 1.0), (1.0, 100.0)] * 5,  # faster with more input
        [(1.0, 100.0), (100.0, 200.0)] * 5,  # a line with a negative intercept
        [(5.0, 100.0), (90.0, 100.1), (5.0, 100.2)] * 5,  # noise alone, on sizes that hardly differ
    ],
)
@pytest.mark.parametrize("size", [0.001, 1, 100, 1e7])
def test_no_run_time_is_negative_nor_falls_with_the_input_nor_leaves_what_was_seen(seen, size):
    known = after(*seen)
    smaller, larger = sorted((mean_s(known, size), mean_s(known, 2 * size)))
    assert 0 < mean_s(known, size) == smaller <= larger
    assert larger <= REACH * 2 * max(seconds for seconds, _ in seen)


def test_an_outlier_weighs_little():
    usual = [10.0, 11.0, 9.0] * 4
    known = after(*((seconds, 64.0) for seconds in (*usual, 3600.0)))
    assert mean_s(known, 64) == pytest.approx(10.0, rel=0.1)


def test_a_first_run_that_hung_is_forgotten():
    known = after((3600.0, 64.0), (10.0, 64.0), (11.0, 64.0))
    assert mean_s(known, 64) == pytest.approx(10.5)


def test_a_first_large_map_is_not_forgotten_for_a_small_one():
    assert mean_s(after((11.5, 256.0), (1.0, 1.0)), 256) == pytest.approx(11.5, rel=0.15)


@pytest.mark.parametrize("times", [0.2, 5.0])
def test_what_changed_for_good_is_learned_anew(times):
    before = tasks(*[64.0, 256.0] * 200, noise=0.1)
    later = [(times * seconds, size) for seconds, size in tasks(*[64.0, 256.0] * 200, noise=0.1, seed=2)]
    assert mean_s(after(*before, *later), 256) == pytest.approx(times * 11.5, rel=0.1)


def test_runs_without_a_known_input_count_in_the_mean_alone():
    known = after((10.0, 0.0), (10.0, 0.0), (10.0, 64.0), (10.0, 0.0))
    assert known.mean_bytes == 64 * MB
    assert (mean_s(known, 64), mean_s(known, 0)) == (10.0, 10.0)


def test_of_an_earlier_version_the_mean_is_taken_over():
    table = fit.Table(Runs, {"ns/a/0/map": [4, 40.0, 400.0], "ns/b/0/map": [4, 40.0, 0.0]})
    assert [known.estimate(100).mean_s for known in table.values()] == [10.0, 10.0]
    assert [known.weight for known in table.values()] == [4, 4]


def test_a_table_is_restored_from_its_dump():
    table = fit.Table(Runs)
    table.put("ns/a/0/map", after(*tasks(1.0, 64.0, 256.0, noise=0.1)))
    assert fit.Table(Runs, json.loads(json.dumps(table.dump()))) == table
    assert fit.Table(Sums, table.dump()) == {}


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, 1e300, "x"])
def test_sums_that_no_runs_have_are_dropped_or_do_no_harm(place, wrong):
    table = fit.Table(Runs)
    table.put("ns/a/0/map", after(*tasks(1.0, 64.0, 256.0, noise=0.1)))
    dumped = table.dump()
    dumped["ns/a/0/map"][place] = wrong
    for known in fit.Table(Runs, dumped).values():
        assert 0 < known.after(5.0, 10 * MB).estimate(64 * MB).mean_s < 1000


@pytest.mark.parametrize(("seconds", "size"), [(1e-300, 1e300), (1e300, 1e-300), (1e300, 1e300), (1e-9, 1.0)])
def test_no_forged_run_leaves_the_numbers(seconds, size):
    table = fit.Table(Runs)
    for _ in range(3):
        table.add("ns/a/0/map", seconds, size)
        table.add("ns/a/0/map", 10.0, 64 * MB)
    (known,) = table.values()
    assert all(map(math.isfinite, known.estimate(64 * MB)))
    assert fit.Table(Runs, table.dump()) == table
