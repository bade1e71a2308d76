"""Algorithm 1 of ILA: the static threshold, the dynamic one, and when which is used."""

import math

import numpy as np
import pytest

from boathouse_policies.framework import Groups
from boathouse_policies.ila.config import Config, static
from boathouse_policies.ila.iasm import HostThresholds, Thresholds

NEVER = -math.inf


class Hosts:
    """What `Thresholds` reads of the monitor."""

    def __init__(self, running, ended_s=NEVER):
        self.hosts = Groups([f"h{i}" for i in range(len(running))], [f"n{i}" for i in range(len(running))])
        self.running = np.array(running)
        self.ended_s = np.full(len(running), ended_s)


def host_thresholds(running=2, idle=4, reached=1.0, due=True, first=1.0):
    return HostThresholds(
        first=first,
        is_due=np.array([due]),
        reached=np.array([reached]),
        running=np.array([running]),
        idle=np.array([idle]),
    )


def accepts(host, slowdown, margin=0.0):
    assert host.limit(0, margin) == host.limits(margin)[0]
    return slowdown <= host.limit(0, margin)


def place_on_host(host, slowdown, slots=1):
    """A task that was accepted is placed on the host."""
    host.accept(0, slowdown)
    host.running[0] += 1
    host.idle[0] -= slots


def test_a_static_threshold_accepts_up_to_it_and_the_models_error():
    host = host_thresholds(due=False, first=2.0)
    assert accepts(host, 2.12, margin=0.12)
    assert not accepts(host, 2.13, margin=0.12)


def test_an_empty_host_accepts_anything():
    assert accepts(host_thresholds(running=0, due=False), 100.0)


def test_idle_hosts_accept_what_raises_their_throughput():
    assert accepts(host_thresholds(running=2, reached=1.0), 1.49)  # 3 / 1.49 > 2 / 1
    assert not accepts(host_thresholds(running=2, reached=1.0), 1.5)


def test_a_task_that_pays_raises_the_threshold_to_its_slowdown():
    host = host_thresholds(running=2, reached=1.0)
    place_on_host(host, 1.4)
    assert host.reached[0] == 1.4


@pytest.mark.parametrize(
    ("before", "slowdown", "after"), [(4.0, 1.0, 3.0), (1.5, 1.0, 1.0), (4.0, 3.6, 3.6), (1.0, 1.0, 1.0)]
)
def test_a_threshold_above_the_slowdown_falls_by_one_at_most_and_never_below_either(before, slowdown, after):
    host = host_thresholds(running=3, reached=before)
    place_on_host(host, slowdown)
    assert host.reached[0] == after


def test_what_the_margin_alone_lets_in_does_not_raise_the_threshold():
    host = host_thresholds(running=20, reached=1.0)
    assert accepts(host, 1.1, margin=0.12)
    place_on_host(host, 1.1)
    assert host.reached[0] == 1.0


def test_each_acceptance_counts_as_one_that_runs():
    host = host_thresholds(running=1, reached=1.0)
    assert accepts(host, 1.9)
    place_on_host(host, 1.0)
    assert not accepts(host, 1.9)  # 3 / 1.9 < 2 / 1


def test_with_one_idle_slot_left_the_static_threshold_counts():
    host = host_thresholds(running=2, idle=3, reached=2.0)
    place_on_host(host, 1.0, slots=2)
    assert host.limit(0, 0.0) == 1.0


def test_a_placement_on_an_idle_host_does_not_change_its_threshold():
    host = host_thresholds(running=0, reached=1.0)
    place_on_host(host, 3.0)
    assert host.reached[0] == 1.0


# From cycle to cycle


def due(thresholds, now_s, idle, running=2, ended_s=NEVER):
    return thresholds.begin(now_s, Hosts([running], ended_s), np.array([idle])).limit(0, 0.12) > 1.2


def test_the_dynamic_threshold_needs_more_than_one_idle_slot_for_twenty_seconds():
    thresholds = Thresholds(Config())
    assert not due(thresholds, 0.0, idle=2)
    assert not due(thresholds, 19.9, idle=2)
    assert due(thresholds, 20.0, idle=2)


def test_one_idle_slot_is_not_enough():
    thresholds = Thresholds(Config())
    due(thresholds, 0.0, idle=1)
    assert not due(thresholds, 30.0, idle=1)


def test_the_time_restarts_when_the_slots_were_taken():
    thresholds = Thresholds(Config())
    for now_s, idle in ((0.0, 2), (15.0, 1), (16.0, 2)):
        due(thresholds, now_s, idle)
    assert not due(thresholds, 30.0, idle=2)
    assert due(thresholds, 36.0, idle=2)


def test_slots_are_idle_since_the_last_task_ended_there():
    thresholds = Thresholds(Config())
    due(thresholds, 0.0, idle=0)
    assert due(thresholds, 50.0, idle=2, ended_s=30.0)


def test_a_full_host_forgets_its_threshold():
    thresholds = Thresholds(Config())
    due(thresholds, 0.0, idle=2)
    thresholds.placed(0, 3.0)
    assert thresholds.begin(20.0, Hosts([2]), np.array([2])).reached[0] == 3.0
    due(thresholds, 21.0, idle=1)
    assert thresholds.begin(22.0, Hosts([2]), np.array([2])).reached[0] == 1.0


def test_a_static_configuration_never_uses_the_dynamic_threshold():
    thresholds = Thresholds(static(1.0))
    due(thresholds, 0.0, idle=9)
    assert not due(thresholds, 1e6, idle=9)
    assert thresholds.long_idle_s(0.0) == math.inf


def test_it_says_when_the_next_host_may_use_the_dynamic_threshold():
    thresholds = Thresholds(Config())
    due(thresholds, 5.0, idle=2)
    assert thresholds.long_idle_s(5.0) == 25.0
    assert thresholds.long_idle_s(25.0) == math.inf


def test_thresholds_follow_their_hosts_when_others_come():
    thresholds = Thresholds(Config())
    due(thresholds, 0.0, idle=2)
    thresholds.placed(0, 2.5)
    two = Hosts([2, 2])
    two.hosts = Groups(["new", "h0"], ["a", "b"])
    now = thresholds.begin(1.0, two, np.array([2, 2]))
    assert [now.reached[0], now.reached[1]] == [1.0, 2.5]
