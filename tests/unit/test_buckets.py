"""Token buckets by key."""

from boathouse import fair
from tests.builders.clocks import Clock


def test_a_bucket_gives_its_burst_and_then_its_rate():
    clock = Clock()
    limits = fair.Buckets(rate_per_s=2, burst=3, clock=clock)
    assert [limits.take("a") for _ in range(4)] == [True, True, True, False]
    assert limits.wait_s("a") == 0.5
    clock.now_s = 10.0
    assert [limits.take("a") for _ in range(4)] == [True, True, True, False]


def test_each_key_has_its_own():
    limits = fair.Buckets(rate_per_s=1, burst=1, clock=Clock())
    assert limits.take("a")
    assert limits.take("b")
    assert not limits.take("a")


def test_buckets_that_are_full_again_are_forgotten():
    clock = Clock()
    limits = fair.Buckets(rate_per_s=1, burst=1, clock=clock)
    for name in range(5000):
        clock.now_s += 1.0
        limits.take(str(name))
    assert len(limits._levels) < 2000


def test_a_cost_that_was_known_too_late_is_paid_off_first():
    clock = Clock()
    limits = fair.Buckets(rate_per_s=1, burst=5, clock=clock)
    limits.charge("a", 7)
    clock.now_s += 2
    assert not limits.take("a")
    clock.now_s += 1
    assert limits.take("a")


def test_of_too_many_buckets_those_that_were_not_used_for_the_longest_time_are_forgotten(monkeypatch):
    monkeypatch.setattr(fair, "MAX_KEYS", 2)
    monkeypatch.setattr(fair, "_SWEEP_AT", 3)
    limits = fair.Buckets(rate_per_s=1, burst=2, clock=Clock())
    for name in "abcad":
        limits.take(name)
    assert list(limits._levels) == ["a", "d"]
