"""Limits of connections, on a clock that only the tests move."""

import dataclasses

import pytest

from boathouse.listening.connections import Connections, Limits, Places, Rate, Refusal
from boathouse.services.progress import server as progress_server
from boathouse.telemetry import server as telemetry_server
from tests.builders import clocks

PLENTY = Rate(per_s=1e6, burst=1e6)
WIDE = Limits(
    most=1000,
    unverified=1000,
    of_address=1000,
    unverified_of_address=1000,
    rate=PLENTY,
    address_rate=PLENTY,
    few=PLENTY,
    queues=True,
    head_s=10,
    life_s=10,
)


@pytest.fixture
def clock():
    return clocks.Clock()


def test_places_are_bounded_for_each_key_and_in_all():
    places = Places(in_all=2, per_key=1)
    with places.place("a") as first, places.place("a") as second, places.place("b") as third, places.place("c") as last:
        assert (first, second, third, last) == (True, False, True, False)
    with places.place("c") as again:
        assert again


# Numbers of connections


def held_by(clock, **limits):
    return Connections(dataclasses.replace(WIDE, **limits), clock)


def begin(held, name, address="10.0.0.1"):
    """Add a connection; returns the refusal, or the connection that gives way to it."""
    return held.add(name, address) or held.surplus(address)


def test_the_oldest_connection_of_a_full_address_gives_way_to_its_next(clock):
    held = held_by(clock, of_address=2)
    assert [begin(held, name) for name in "abc"] == [None, None, "a"]
    assert begin(held, "d", "10.0.0.2") is None
    assert held.open == 3


def test_an_address_holds_few_connections_without_a_token(clock):
    held = held_by(clock, unverified_of_address=1)
    begin(held, "a")
    held.verified("a")
    assert [begin(held, name) for name in "bc"] == [None, "b"]


def test_an_address_whose_connections_all_have_a_token_gets_no_more_than_its_limit(clock):
    held = held_by(clock, of_address=1)
    begin(held, "a")
    held.verified("a")
    assert begin(held, "b") is Refusal.TOO_MANY_CONNECTIONS
    held.remove("a")
    assert begin(held, "c") is None


def test_if_all_are_taken_the_oldest_without_a_token_is_closed(clock):
    held = held_by(clock, most=3)
    for number in range(3):
        begin(held, number, f"10.0.0.{number}")
    held.verified(0)
    assert [begin(held, name, "10.0.0.9") for name in ("late", "later")] == [1, 2]


def test_connections_without_a_token_take_a_part_of_all_places(clock):
    held = held_by(clock, most=10, unverified=2)
    assert [begin(held, name, f"10.0.0.{name}") for name in range(4)] == [None, None, 0, 1]
    assert held.open == 2


def test_if_all_have_shown_a_token_a_new_connection_is_refused(clock):
    held = held_by(clock, most=3)
    for number in range(3):
        begin(held, number)
        held.verified(number)
    assert begin(held, "late", "10.0.0.9") is Refusal.TOO_MANY_CONNECTIONS
    held.remove(1)
    assert begin(held, "later", "10.0.0.9") is None


def test_a_connection_that_closes_twice_is_counted_once(clock):
    held = held_by(clock)
    for number in range(3):
        begin(held, number)
    held.remove(1)
    held.remove(1)
    held.verified(1)
    assert held.open == 2


# Rates


def test_one_address_begins_no_more_connections_than_a_node_full_of_tasks(clock):
    held = Connections(progress_server.LIMITS, clock)
    refusals = []
    for number in range(500):
        refusals.append(held.add(number, "10.0.0.1"))
        held.remove(number)
        clock.now_s += 0.001
    assert refusals[0] is None
    assert refusals[-1] is Refusal.TOO_MANY_HANDSHAKES


def flood(held, clock, addresses, seconds, rate=1000):
    """Connections of many addresses, each of which is closed at once."""
    for number in range(int(seconds * rate)):
        if held.may_accept:
            held.add(number, f"10.1.{number % addresses // 200}.{number % addresses % 200}")
            held.remove(number)
        clock.now_s += 1 / rate


def test_if_handshakes_are_scarce_addresses_that_begin_few_still_may(clock):
    held = Connections(progress_server.LIMITS, clock)
    flood(held, clock, addresses=20, seconds=2)
    assert held.add("greedy", "10.1.0.0") is Refusal.TOO_MANY_HANDSHAKES
    assert held.may_accept
    assert held.add("modest", "10.2.0.1") is None


def test_handshakes_in_all_are_bounded_and_the_others_wait(clock):
    held = Connections(progress_server.LIMITS, clock)
    begun = 0
    while held.may_accept and begun < 10_000:
        assert held.add(begun, f"10.0.{begun // 200}.{begun % 200}") is None
        begun += 1
    assert begun == progress_server.LIMITS.rate.burst


@pytest.mark.parametrize("addresses", [1, 4, 150, 300])
def test_a_flood_from_many_addresses_leaves_the_kubelet_its_probes(clock, addresses):
    held = Connections(telemetry_server.LIMITS, clock)
    flood(held, clock, addresses, seconds=3, rate=3000)
    for probe in range(8):  # 0.6 in a second
        assert held.may_accept
        assert held.add(f"probe {probe}", "10.0.0.1") is None
        flood(held, clock, addresses, seconds=1.6, rate=3000)
