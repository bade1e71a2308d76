"""The API server's clock is known from its responses, whatever the wall clock of this machine says."""

import email.utils

import pytest

from boathouse.cluster import server_time
from tests.builders.clocks import Clock

HOUR_S, DAY_S = 3600.0, 86400.0
TRUE_S = 1_767_225_600.0
STEPS = pytest.mark.parametrize("step_s", [-DAY_S, -HOUR_S, HOUR_S, DAY_S])


def date(epoch_s):
    return email.utils.formatdate(epoch_s, usegmt=True)


@STEPS
def test_a_response_corrects_a_wall_clock_that_was_wrong_from_the_start(step_s):
    known = server_time.ServerTime(Clock(100.0), Clock(TRUE_S + step_s))
    known.observe(date(TRUE_S), sent_s=99.9, received_s=100.0)
    assert known.now_s() == pytest.approx(TRUE_S, abs=1.2)


@STEPS
def test_a_step_of_the_wall_clock_changes_nothing(step_s):
    monotonic, wall = Clock(100.0), Clock(TRUE_S)
    known = server_time.ServerTime(monotonic, wall)
    wall.now_s += step_s
    monotonic.now_s += 5
    assert known.now_s() == TRUE_S + 5


@STEPS
def test_a_corrected_clock_of_the_server_is_followed_but_not_by_durations(step_s):
    monotonic = Clock(100.0)
    known = server_time.ServerTime(monotonic, Clock(TRUE_S))
    known.observe(date(TRUE_S), sent_s=100.0, received_s=100.0)
    durations = known.steady()
    known.observe(date(TRUE_S + step_s), sent_s=100.0, received_s=100.0)
    assert known.now_s() == pytest.approx(TRUE_S + step_s, abs=1.0)
    monotonic.now_s += 7
    assert durations() == TRUE_S + 7


def test_responses_that_agree_narrow_the_clock_below_the_resolution_of_the_header():
    monotonic = Clock(0.0)
    known = server_time.ServerTime(monotonic, Clock(0.0))
    for monotonic.now_s in (0.2, 0.9, 1.1, 1.95):
        known.observe(date(int(TRUE_S + monotonic.now_s)), sent_s=monotonic.now_s, received_s=monotonic.now_s)
    assert known.now_s() == pytest.approx(TRUE_S + 1.95, abs=0.11)


@pytest.mark.parametrize("text", ["", "yesterday", "Thu, 99 Jan 2026 00:00:00 GMT"])
def test_a_malformed_date_is_ignored(text):
    known = server_time.ServerTime(Clock(0.0), Clock(TRUE_S))
    known.observe(text, sent_s=0.0, received_s=0.0)
    assert known.now_s() == TRUE_S


@pytest.mark.parametrize("apart_s", [-1.9, -1.0, 1.0, 1.9])
def test_api_servers_that_disagree_by_seconds_are_one_clock_that_never_goes_back(apart_s):
    monotonic = Clock(0.0)
    known = server_time.ServerTime(monotonic, Clock(0.0))
    known.observe(date(TRUE_S), sent_s=0.0, received_s=0.0)
    told = [known.now_s()]
    for turn in range(40):
        monotonic.now_s += 0.1
        server_s = int(TRUE_S + monotonic.now_s + apart_s * (turn % 2))
        known.observe(date(server_s), sent_s=monotonic.now_s, received_s=monotonic.now_s)
        told.append(known.now_s())
    assert told == sorted(told)
    assert told[-1] == pytest.approx(TRUE_S + monotonic.now_s, abs=server_time.TOLERANCE_S)


def test_the_time_of_another_api_server_within_the_tolerance_is_ignored():
    known = server_time.ServerTime(Clock(0.0), Clock(TRUE_S))
    known.observe(date(TRUE_S), sent_s=0.0, received_s=0.0)
    before_s = known.now_s()
    known.observe(date(TRUE_S + 2), sent_s=0.0, received_s=0.0)
    assert known.now_s() == before_s


def test_a_correction_below_the_tolerance_stops_the_clock_but_does_not_turn_it_back():
    known = server_time.ServerTime(Clock(0.0), Clock(TRUE_S + 1.5))
    before_s = known.now_s()
    known.observe(date(TRUE_S - 1), sent_s=0.0, received_s=0.0)
    assert known.now_s() == before_s


@STEPS
def test_after_a_step_of_the_server_its_new_clock_is_kept(step_s):
    monotonic = Clock(0.0)
    known = server_time.ServerTime(monotonic, Clock(TRUE_S))
    known.observe(date(TRUE_S), sent_s=0.0, received_s=0.0)
    for monotonic.now_s in (10.0, 20.0):
        known.observe(date(TRUE_S + step_s + monotonic.now_s), sent_s=monotonic.now_s, received_s=monotonic.now_s)
        assert known.now_s() == pytest.approx(TRUE_S + step_s + monotonic.now_s, abs=1.0)
