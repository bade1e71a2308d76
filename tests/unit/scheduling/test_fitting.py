"""How much of a gang nodes have room for, beside all ways to place it."""

import itertools

import hypothesis
from hypothesis import strategies as st

from boathouse.scheduling import gangs
from boathouse.scheduling.tenants import fitting
from boathouse_policies import model
from tests.builders.operators.applications import App


def gang(app: App) -> gangs.Gang:
    found = gangs.of(app.classes, app.tasks(app.minimum))
    assert found is not None
    return found


def nodes(*cores: int) -> list[fitting.Space]:
    sizes = [model.Resources(cpu_milli=1000 * each, memory_bytes=1 << 30) for each in cores]
    return fitting.empty(model.Node(name=model.NodeName(f"n{i}"), allocatable=size) for i, size in enumerate(sizes))


def fits(app: App, cores: list[int]) -> bool:
    """Try every node for the driver, and fill all nodes with executors."""
    for place in range(len(cores)):
        left = [each - app.driver_cpu * (i == place) for i, each in enumerate(cores)]
        if left[place] >= 0 and sum(each // app.cpu for each in left) >= app.minimum:
            return True
    return False


small = st.integers(1, 6)


@hypothesis.given(cores=st.lists(small, min_size=1, max_size=4), minimum=small, cpu=small, driver_cpu=small)
def test_a_gang_fits_if_there_is_any_way_to_place_it(cores, minimum, cpu, driver_cpu):
    app = App(minimum=minimum, cpu=cpu, driver_cpu=driver_cpu)
    assert (fitting.never_fits(gang(app), nodes(*cores)) is None) is fits(app, cores)
    found = fitting.fit(gang(app), nodes(*cores))
    assert (found.driver is not None and found.beside >= minimum) is fits(app, cores)


def test_nodes_that_labels_exclude_do_not_count():
    wanted = gang(App(minimum=1))
    selective = model.Constraints(node_selector=(("disk", "ssd"),))
    executor = model.TaskClass(
        id=wanted.executor.id, job=wanted.executor.job, resources=wanted.executor.resources, constraints=selective
    )
    other = gangs.Gang(driver=wanted.driver, expected=wanted.expected, leader=wanted.leader, executor=executor)
    assert fitting.never_fits(other, nodes(4, 4)) is not None


def test_a_cluster_without_nodes_says_nothing():
    assert fitting.never_fits(gang(App()), []) is None


def test_a_limit_of_a_queue_holds_for_the_sum():
    wanted = gang(App(minimum=3))
    for limit, allowed in itertools.product([{"cpu": 4000}, {"pods": 4}, {"memory": 4 << 20}, {}], [True]):
        assert (fitting.above_limit(wanted, model.Queue.of(model.QueueName("q"), limits=limit)) is None) is allowed
    assert "is limited to 3.999" in (
        fitting.above_limit(wanted, model.Queue.of(model.QueueName("q"), limits={"cpu": 3999})) or ""
    )
