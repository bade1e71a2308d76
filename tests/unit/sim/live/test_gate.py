"""What a reducer may have copied."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_sim.live.rates import Gate


def opened(*ends_ms: int) -> Gate:
    gate = Gate(len(ends_ms))
    for end_ms in ends_ms:
        gate.more(end_ms)
    return gate


def test_nothing_is_copied_before_the_first_map_ended():
    assert Gate(2).done(0.0, 0, 1000, rate=1.0) == 0.0


def test_a_fast_reducer_has_what_exists():
    assert opened(10, 20).done(0.0, 0, 15, rate=1.0) == 0.5


def test_a_slow_reducer_copies_at_its_rate_from_the_first_map_on():
    assert opened(10, 20).done(0.0, 0, 15, rate=0.01) == pytest.approx(0.05)


def test_a_reducer_that_was_idle_does_not_catch_up_at_once():
    # Half at 10 ms, copied by 20; idle until 100; then 30 ms at 0.01 a millisecond.
    assert opened(10, 100).done(0.0, 0, 130, rate=0.05 / 5) == pytest.approx(0.5 + 0.3)


def test_it_is_open_with_the_last_map_and_closed_by_a_loss():
    gate = opened(5, 6)
    assert gate.open
    gate.more(7, -1)
    assert (gate.open, gate.done(0.0, 7, 100, rate=1.0)) == (False, 0.5)


@hypothesis.given(
    ends=st.lists(st.integers(0, 50), min_size=1, max_size=6),
    rate=st.floats(0.001, 0.5),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_asking_in_between_changes_nothing(ends, rate, cuts):
    gate = opened(*sorted(ends))
    whole, done, at = gate.done(0.0, 0, 60, rate), 0.0, 0
    for cut in [*sorted(cuts), 60]:
        done, at = gate.done(done, at, cut, rate), cut
    assert done == pytest.approx(whole)


@hypothesis.given(ends=st.lists(st.integers(0, 30), min_size=1, max_size=5), rate=st.floats(0.01, 0.5))
def test_it_is_what_copying_millisecond_by_millisecond_gives(ends, rate):
    gate, done = opened(*sorted(ends)), 0.0
    for at in range(40):
        done = min(done + rate, sum(end <= at for end in ends) / len(ends))
    assert gate.done(0.0, 0, 40, rate) == pytest.approx(done)
