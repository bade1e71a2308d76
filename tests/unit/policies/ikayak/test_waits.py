"""Algorithms 1 and 2 over columns, against the same written plainly."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from boathouse_policies.ikayak import placement
from boathouse_policies.ikayak.book import ROWS, Columns


def columns(*tasks) -> Columns:
    """(node, left_s, cpu, memory) of each task."""
    node = np.array([task[0] for task in tasks], np.intp)
    held = np.array([(*task[2:], 0, 1) for task in tasks], np.int64).reshape(len(tasks), ROWS).T
    return Columns(node, held, np.array([float(task[1]) for task in tasks]))


def room(*nodes):
    """(cpu, memory) of each node, with pods to spare."""
    return np.array([(*node, 0, 100) for node in nodes], np.int64).T


def need(cpu, memory):
    return np.array([cpu, memory, 0, 1], np.int64)


def plain(lacking, tasks, node):
    """Algorithm 2 for one node, line by line."""
    if all(amount <= 0 for amount in lacking):
        return 0.0
    freed = [0] * len(lacking)
    for left_s, cpu, memory in sorted((t[1], t[2], t[3]) for t in tasks if t[0] == node):
        freed = [freed[0] + cpu, freed[1] + memory, freed[2], freed[3] + 1]
        if all(have >= want for have, want in zip(freed, lacking, strict=True)):
            return float(left_s)
    return float("inf")


TASK = st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=100, deadline=None)
@given(st.lists(TASK, max_size=15), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=4))
def test_the_wait_is_the_last_of_the_shortest_prefix_that_fits(tasks, free):
    lacking = need(6, 5)[:, None] - room(*free)
    found = placement.waits_s(lacking, placement.in_order_of_end(columns(*tasks)))
    assert found.tolist() == [plain(lacking[:, n].tolist(), tasks, n) for n in range(4)]


def test_every_resource_must_fit():
    # CPU is enough after the first, memory only after the second.
    tasks = placement.in_order_of_end(columns((0, 5, 4, 1), (0, 9, 1, 4)))
    assert placement.waits_s(need(4, 4)[:, None] - room((0, 0)), tasks).tolist() == [9.0]


def test_a_wait_grows_with_what_was_promised():
    found = prospects([(0, 0)], reducers=[(0, 5, 4, 4), (0, 9, 4, 4)])
    assert found.wait_s(need(4, 4)).tolist() == [5.0]
    found.take(0, need(4, 4))
    assert found.wait_s(need(4, 4)).tolist() == [9.0]


def test_what_maps_hold_is_added_up_by_node():
    found = prospects([(0, 0)] * 3, maps=[(1, 5, 4, 1), (1, 9, 1, 4), (0, 3, 2, 2)])
    assert found.soon[:2].tolist() == [[2, 5, 0], [2, 5, 0]]


def test_fitting_is_by_the_scarcest_resource():
    assert placement.fitting(room((8, 2), (4, 8)), need(2, 2)).tolist() == [1.0, 2.0]


def prospects(free, maps=(), reducers=(), may=None) -> placement.Prospects:
    free = room(*free)
    may = np.ones(free.shape[1], np.bool_) if may is None else np.array(may)
    return placement.Prospects(free, columns(*maps), columns(*reducers), may)


def best(found, cpu=4, memory=4, kept=()):
    liked = np.ones(found.free.shape[1])
    liked[list(kept)] = 0.8
    return found.best(need(cpu, memory), liked)


def test_first_the_node_with_most_free():
    assert best(prospects([(4, 4), (8, 8), (6, 6)], maps=[(0, 1, 95, 95)])) == 1


def test_then_the_node_with_most_free_and_maps():
    maps = [(0, 1, 1, 1), (1, 99, 6, 6), (2, 0, 3, 3)]
    assert best(prospects([(3, 3), (2, 2), (0, 0)], maps=maps)) == 1


def test_then_the_node_with_the_shortest_wait():
    reducers = [(0, 50, 4, 4), (1, 20, 2, 2), (1, 30, 2, 2), (2, 1, 1, 1)]
    assert best(prospects([(0, 0)] * 3, reducers=reducers)) == 1


def test_a_wait_is_at_least_that_of_the_last_map():
    reducers = [(0, 50, 4, 4), (1, 20, 4, 4)]
    assert best(prospects([(0, 0)] * 2, maps=[(1, 60, 1, 1)], reducers=reducers)) == 0


def test_a_node_that_never_has_room_is_not_chosen():
    assert best(prospects([(0, 0)], reducers=[(0, 5, 3, 9)])) is None


def test_only_nodes_that_may_be_chosen_are():
    assert best(prospects([(9, 9), (4, 4)], may=[False, True])) == 1
    assert best(prospects([(9, 9)], may=[False])) is None
    reducers = [(0, 5, 4, 4), (1, 50, 4, 4)]
    assert best(prospects([(0, 0)] * 2, reducers=reducers, may=[False, True])) == 1


def test_a_kept_node_stays_kept_within_its_tier():
    assert best(prospects([(0, 0)] * 2, maps=[(0, 9, 4, 4), (1, 9, 8, 8)]), kept=[0]) == 0
    assert best(prospects([(0, 0), (4, 4)], maps=[(0, 9, 8, 8)]), kept=[0]) == 1


@pytest.mark.parametrize(("other_s", "node"), [(90, 0), (79, 1)])
def test_a_kept_node_is_given_up_for_a_clearly_shorter_wait(other_s, node):
    reducers = [(0, 100, 4, 4), (1, other_s, 4, 4)]
    assert best(prospects([(0, 0)] * 2, reducers=reducers), kept=[0]) == node


def test_what_is_promised_to_one_executor_is_not_promised_to_the_next():
    found = prospects([(8, 8), (7, 7)])
    found.take(0, need(4, 4))
    assert best(found) == 1
    found.take(1, need(4, 4))
    assert best(found) == 0
