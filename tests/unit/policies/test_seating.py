"""Which executors of a gang that has begun get the places that are reserved for its minimum."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_policies import model
from boathouse_policies.framework import gang_minimum
from tests.builders import core

NODES = {node.name: node for node in core.nodes(3)}


def gang(minimum: int, cores: int = 1) -> gang_minimum.Gang:
    job = core.job("app")
    driver, others = core.task_class(job, name="driver"), core.task_class(job, size(cores), name="executor")
    found = gang_minimum.Gang.of([driver, others], [core.task(driver), *core.tasks(others, minimum, expected=True)])
    assert found is not None
    return found


def size(cores: int) -> model.Resources:
    return core.amount(1000 * cores, 1)


def executor(number: int, cores: int = 1, **fields) -> gang_minimum.Executor:
    constraints = fields.pop("constraints", model.UNCONSTRAINED)
    return gang_minimum.Executor(
        id=model.TaskId(f"ns/e{number}"), resources=size(cores), constraints=constraints, **fields
    )


def places(of: gang_minimum.Gang, *nodes: str) -> list[gang_minimum.Place]:
    return [gang_minimum.Place(task, model.NodeName(node)) for task, node in zip(of.expected, nodes, strict=False)]


def seat(of: gang_minimum.Gang, executors, *nodes: str, now_s: float = 0.0) -> gang_minimum.Seating:
    return gang_minimum.seat(of, executors, places(of, *nodes), NODES, now_s)


def seats(found: gang_minimum.Seating) -> list[tuple[str, str, int]]:
    """Each executor with its node, and how many places it takes."""
    return [(one.executor, one.node, len(one.expected)) for one in found.seats]


def test_executors_take_places_in_the_order_of_their_names():
    found = seat(gang(3), [executor(10), executor(2)], "n0", "n1", "n2")
    assert seats(found) == [("ns/e2", "n2", 1), ("ns/e10", "n1", 1)]
    assert (found.released, found.short, found.missing) == ([], [], 0)


def test_executors_without_a_place_are_short_and_so_are_expected_ones_without_one():
    found = seat(gang(4), [executor(0), executor(1)], "n0")
    assert (seats(found), found.short, found.missing) == ([("ns/e0", "n0", 1)], ["ns/e1"], 2)


def test_places_beyond_the_minimum_are_released():
    found = seat(gang(2), [executor(0, is_placed=True)], "n0", "n1")
    assert (found.released, found.missing) == (["ns/app/executor-1"], 0)


def test_executors_beyond_the_minimum_get_no_place():
    assert seats(seat(gang(1), [executor(0), executor(1)], "n0")) == [("ns/e0", "n0", 1)]


def test_a_larger_executor_takes_places_of_one_node_or_releases_as_many():
    found = seat(gang(3), [executor(0, cores=2)], "n0", "n1", "n1")
    assert (seats(found), found.released, found.missing) == ([("ns/e0", "n1", 2)], [], 0)
    found = seat(gang(2), [executor(0, cores=2)], "n0", "n1")
    assert (seats(found), len(found.released), found.missing) == ([], 2, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"is_held": True},
        {"since_s": 0.0, "failures": 2},
        {"cores": 2, "constraints": None},
        {"cores": 2, "constraints": model.Constraints(node_selector=(("zone", "a"),))},
        {"cores": 2, "constraints": model.Constraints(host_ports=(model.HostPort(port=80),))},
    ],
    ids=["held", "backing off", "unreadable", "elsewhere", "ports"],
)
def test_an_executor_that_may_not_be_bound_now_or_there_takes_no_place(fields):
    assert seats(seat(gang(2), [executor(0, **fields)], "n0", "n0", now_s=1.0)) == []


def test_a_bind_that_failed_is_tried_again_after_a_delay_that_grows():
    waiting = [executor(number, failures=failures) for number, failures in enumerate((1, 2, 9))]
    assert [one.due_s for one in waiting] == [1.0, 2.0, 10.0]
    found = seat(gang(3), waiting, "n0", "n0", "n0", now_s=1.0)
    assert (seats(found), found.retry_s) == ([("ns/e0", "n0", 1)], 2.0)


def test_a_driver_has_created_as_much_of_its_minimum_as_its_executors_are_large():
    created = [executor(0, is_placed=True), executor(1, cores=2)]
    assert (gang_minimum.short_of(gang(4), created), gang_minimum.uncreated(gang(4), created)) == (3, 1)


pods = st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=6)


@hypothesis.given(st.integers(1, 6), pods, st.lists(st.sampled_from(["n0", "n1", "n2"]), max_size=6))
def test_no_place_is_taken_twice_and_what_is_kept_is_no_more_than_is_short(minimum, pods, nodes):
    app = gang(minimum)
    executors = [executor(number, cores, is_placed=placed) for number, (cores, placed) in enumerate(pods)]
    found = seat(app, executors, *nodes)
    taken = [place for one in found.seats for place in one.expected]
    given = {place.expected: place.node for place in places(app, *nodes)}
    assert len(set(taken) | set(found.released)) == len(taken) + len(found.released)
    assert all(given[place] == one.node for one in found.seats for place in one.expected)
    kept = len(given) - len(taken) - len(found.released)
    assert kept + found.missing + len(found.short) <= gang_minimum.short_of(app, executors)
