"""What counts as growth in a soak."""

import pytest

from tests.soak import verdict


def sample(progress, rss_mib):
    return verdict.Sample(
        progress=progress, time_s=100 * progress, pod_events=0, objects={}, rss_mib=rss_mib, cpu_s=10 * progress
    )


def soak(*rss_mib):
    """Return windows of three samples each, of which one is an outlier."""
    parts = [(part + 0.5) / len(rss_mib) for part in range(len(rss_mib))]
    samples = [sample(at, rss + more) for at, rss in zip(parts, rss_mib, strict=True) for more in (0.0, 90.0, -90.0)]
    return verdict.windows(samples, len(rss_mib))


@pytest.mark.parametrize(
    ("rss_mib", "grown"),
    [
        ((100, 150, 150, 150, 150, 150), 0.0),  # all of it in the first third
        ((100, 150, 230, 230, 200, 120), -0.2),
        ((100, 110, 120, 130, 140, 165), 0.5),
    ],
)
def test_growth_is_counted_from_the_last_window_of_the_first_third(rss_mib, grown):
    assert verdict.growth(soak(*rss_mib)) == pytest.approx(grown)


def test_a_soak_without_samples_after_the_first_third_has_no_verdict():
    with pytest.raises(ValueError, match="too short"):
        verdict.growth(verdict.windows([sample(0.1, 100)]))


def test_growth_and_leaks_fail_a_soak():
    assert verdict.problems(0.03, {}) == []
    assert len(verdict.problems(0.031, {"boathouse.Kept.items": (0, 1)})) == 2
