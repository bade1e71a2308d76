"""Limits of connections, on a clock that only the tests move."""

import pytest

from boathouse.listening import connections
from boathouse.listening.budget import Places
from boathouse.listening.connections import Connections, Refusal
from tests.builders import clocks


@pytest.fixture
def clock():
    return clocks.Clock()


def test_places_are_bounded_for_each_key_and_in_all():
    places = Places(in_all=2, per_key=1)
    with places.place("a") as first, places.place("a") as second, places.place("b") as third, places.place("c") as last:
        assert (first, second, third, last) == (True, False, True, False)
    with places.place("c") as again:
        assert again


# Connections


def filled(clock, most, address="10.0.0.{}"):
    held = Connections(most, clock)
    for number in range(most):
        assert held.add(number, address.format(number)) is None
    return held


def test_one_address_cannot_hold_all_connections(clock, monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS_OF_ADDRESS", 2)
    held = Connections(10, clock)
    assert [held.add(number, "10.0.0.1") for number in range(3)] == [None, None, Refusal.TOO_MANY_CONNECTIONS]
    assert held.add(4, "10.0.0.2") is None
    held.remove(0)
    assert held.add(5, "10.0.0.1") is None


def test_if_all_are_taken_the_oldest_without_a_token_is_closed(clock):
    held = filled(clock, 3)
    held.verified(0)
    assert held.surplus() is None
    assert [held.add(name, "10.0.0.9") for name in ("late", "later")] == [None, None]
    assert [held.surplus(), held.surplus()] == [1, 2]


def test_if_all_have_shown_a_token_a_new_connection_is_refused(clock):
    held = filled(clock, 3)
    for number in range(3):
        held.verified(number)
    assert held.add("late", "10.0.0.9") is Refusal.TOO_MANY_CONNECTIONS
    held.remove(1)
    assert held.add("later", "10.0.0.9") is None


def test_a_connection_that_closes_twice_is_counted_once(clock):
    held = filled(clock, 3, address="10.0.0.1")
    held.remove(1)
    held.remove(1)
    assert held.open == 2


def test_one_address_begins_no_more_handshakes_than_a_node_full_of_tasks(clock):
    held = Connections(10_000, clock)
    refusals = []
    for number in range(2 * int(connections.ADDRESS_HANDSHAKES_BURST)):
        refusals.append(held.add(number, "10.0.0.1"))
        held.remove(number)
        clock.now_s += 0.001
    assert refusals[0] is None
    assert refusals[-1] is Refusal.TOO_MANY_HANDSHAKES


def test_if_handshakes_are_scarce_addresses_that_begin_few_still_may(clock):
    held = Connections(10_000, clock)
    greedy = [f"10.1.0.{number}" for number in range(20)]
    for number in range(2000):
        if held.may_accept:
            held.add(number, greedy[number % len(greedy)])
        clock.now_s += 0.001
    assert held.add("greedy", greedy[0]) is Refusal.TOO_MANY_HANDSHAKES
    assert held.may_accept
    assert held.add("modest", "10.2.0.1") is None


def test_handshakes_in_all_are_bounded(clock):
    held = Connections(10_000, clock)
    begun = 0
    while held.may_accept and begun < 10_000:
        assert held.add(begun, f"10.0.{begun // 200}.{begun % 200}") is None
        begun += 1
    assert begun == connections.HANDSHAKES_BURST
