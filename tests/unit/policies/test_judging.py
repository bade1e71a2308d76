"""Whether a gang could ever start, beside all ways to place it."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_policies import framework, model
from boathouse_policies.framework import gang_minimum
from tests.builders import core


def gang(minimum: int = 1, cpu: int = 1, driver_cpu: int = 1, **executor) -> gang_minimum.Gang:
    job = core.job("app")
    driver = core.task_class(job, core.amount(1000 * driver_cpu, 1), name="driver")
    others = core.task_class(job, core.amount(1000 * cpu, 1), name="executor", **executor)
    tasks = [core.task(driver), *core.tasks(others, minimum, expected=True)]
    found = gang_minimum.Gang.of([driver, others], tasks)
    assert found is not None
    return found


def view(*cores: int, axis: model.Axis | None = None) -> framework.ClusterView:
    ledger = framework.Ledger(axis or model.Axis())
    for number, node_cores in enumerate(cores):
        ledger.set_node(core.node(f"n{number}", core.amount(1000 * node_cores, 64)))
    return ledger.snapshot(0.0)


def fits(minimum: int, cpu: int, driver_cpu: int, cores: list[int]) -> bool:
    """Try every node for the driver, and fill all nodes with executors."""
    for place in range(len(cores)):
        left = [node_cores - driver_cpu * (i == place) for i, node_cores in enumerate(cores)]
        if left[place] >= 0 and sum(left_cores // cpu for left_cores in left) >= minimum:
            return True
    return False


small = st.integers(1, 6)


@hypothesis.given(cores=st.lists(small, min_size=1, max_size=4), minimum=small, cpu=small, driver_cpu=small)
def test_a_gang_fits_if_there_is_any_way_to_place_it(cores, minimum, cpu, driver_cpu):
    why = gang_minimum.never_fits(gang(minimum, cpu, driver_cpu), view(*cores))
    assert (why is None) is fits(minimum, cpu, driver_cpu, cores)


def test_nodes_that_labels_exclude_do_not_count():
    selective = model.Constraints(node_selector=(("disk", "ssd"),))
    assert "no node that its constraints allow" in gang_minimum.never_fits(gang(constraints=selective), view(4, 4))


@pytest.mark.parametrize("tainted", [{"unschedulable": True}, {"ready": False}])
def test_nodes_that_are_not_ready_or_cordoned_count(tainted):
    ledger = framework.Ledger(model.Axis())
    ledger.set_node(core.node(**tainted))
    assert gang_minimum.never_fits(gang(), ledger.snapshot(0.0)) is None


def test_a_cluster_without_nodes_says_nothing():
    assert gang_minimum.never_fits(gang(), view()) is None


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"cpu": 4000}, None),
        ({"pods": 4}, None),
        ({}, None),
        ({"cpu": 3999}, "request 4 cpu, and queue 'default' is limited to 3.999"),
        ({"pods": 3}, "request 4 pods"),
    ],
)
def test_a_limit_of_a_queue_holds_for_the_sum(limit, why):
    found = gang_minimum.above_limit(gang(minimum=3), core.queue(**limit), model.Axis())
    assert found is None if why is None else why in found


# What a gang takes of a quota


def test_a_gang_takes_of_a_quota_what_its_driver_and_its_minimum_request():
    found = gang_minimum.of_quota(gang(minimum=3, cpu=2, driver_cpu=1), gang_minimum.Limits())
    assert (found["cpu"], found["memory"], found["pods"]) == (7000, 4 << 30, 4)


def test_limits_count_only_where_driver_and_executors_have_them():
    limits = gang_minimum.Limits(driver={"limits.cpu": 1000}, executor={"limits.cpu": 2000, "limits.memory": 5})
    found = gang_minimum.of_quota(gang(minimum=3), limits)
    assert (found["limits.cpu"], "limits.memory" in found) == (7000, False)


@pytest.mark.parametrize(("with_driver", "cpu", "pods"), [(False, 4000, 2), (True, 5000, 3)])
def test_what_was_promised_is_what_is_not_created_yet(with_driver, cpu, pods):
    limits = gang_minimum.Limits(driver={"limits.cpu": 1}, executor={"limits.cpu": 10})
    found = gang_minimum.promised(gang(minimum=3, cpu=2), limits, 2, with_driver=with_driver)
    assert (found["cpu"], found["pods"], found["limits.cpu"]) == (cpu, pods, 20 + with_driver)
