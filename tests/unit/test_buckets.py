"""Token buckets by key."""

from boathouse import buckets


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_bucket_gives_its_burst_and_then_its_rate():
    clock = Clock()
    limits = buckets.Buckets(rate_per_s=2, burst=3, clock=clock)
    assert [limits.take("a") for _ in range(4)] == [True, True, True, False]
    assert limits.wait_s("a") == 0.5
    clock.now_s = 10.0
    assert [limits.take("a") for _ in range(4)] == [True, True, True, False]


def test_each_key_has_its_own():
    limits = buckets.Buckets(rate_per_s=1, burst=1, clock=Clock())
    assert limits.take("a")
    assert limits.take("b")
    assert not limits.take("a")


def test_buckets_that_are_full_again_are_forgotten():
    clock = Clock()
    limits = buckets.Buckets(rate_per_s=1, burst=1, clock=clock)
    for name in range(5000):
        clock.now_s += 1.0
        limits.take(str(name))
    assert len(limits._levels) < 2000
