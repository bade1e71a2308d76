"""Which objects have series of their own."""

import pytest

from boathouse.telemetry.metrics import BoundedSeries


@pytest.fixture
def bounded():
    return BoundedSeries(in_namespace=2, in_all=3)


def put(bounded, *keys):
    for key in keys:
        bounded.put(key, key[0], key.upper())


def keys(bounded):
    return [key for key, _ in bounded.listed()]


def test_a_namespace_has_series_for_its_oldest_objects_only(bounded):
    put(bounded, "a1", "a2", "a3")
    assert list(bounded.listed()) == [("a1", "A1"), ("a2", "A2")]
    assert bounded.unlisted() == 1


def test_the_first_object_of_a_namespace_comes_before_the_second_of_any_other(bounded):
    put(bounded, "a1", "a2", "b1", "b2", "c1")
    assert keys(bounded) == ["a1", "b1", "c1"]


def test_the_place_of_a_dropped_object_is_free_for_the_next(bounded):
    put(bounded, "a1", "a2", "a3")
    bounded.drop("a1")
    bounded.drop("a1")
    assert keys(bounded) == ["a2", "a3"]
    assert bounded.unlisted() == 0


def test_a_changed_object_keeps_its_place(bounded):
    put(bounded, "a1", "a2", "a3")
    bounded.put("a1", "a", "new")
    assert list(bounded.listed()) == [("a1", "new"), ("a2", "A2")]
