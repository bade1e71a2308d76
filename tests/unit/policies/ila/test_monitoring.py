"""System monitoring of ILA: what runs where, and what it uses."""

import dataclasses

import pytest
from hypothesis import given, strategies as st

from boathouse_policies import model
from boathouse_policies.ila import profiling
from boathouse_policies.ila.monitoring import Monitor, Running
from tests.builders import core
from tests.builders.core_ila import hosts


def monitor():
    watch = Monitor(disk_mb_per_s=100.0)
    watch.adopt(core.layout(hosts(2)))
    return watch


def running_task(node="h0v0", cpu=1.0, read=0.0, since_s=0.0, guessed=False, idles=False, task_class="c"):
    demand = profiling.Demand(cpu, read, 0.0)
    size = core.amount(1000, 1)
    return Running(model.ClassId(task_class), model.NodeName(node), size, demand, False, guessed, idles, since_s)


def test_what_is_used_is_the_sum_of_what_runs():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0))
    watch.placed(model.TaskId("b"), running_task(cpu=0.5))
    watch.placed(model.TaskId("c"), running_task("h1v1", cpu=0.25))
    assert watch.use()[0].tolist() == [1.5, 0.0, 0.0, 0.25]
    assert watch.running.tolist() == [2, 1]
    watch.gone(model.TaskId("a"), 1.0)
    assert watch.use()[0].tolist() == [0.5, 0.0, 0.0, 0.25]


def test_neighbours_count_for_the_time_that_they_were_there():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0))
    watch.placed(model.TaskId("b"), running_task("h0v1", cpu=1.0, since_s=5.0))
    watch.gone(model.TaskId("b"), 8.0)
    place, node, host = watch.gone(model.TaskId("a"), 10.0)
    assert (node.cpu, host.cpu) == pytest.approx((1.0, 1.3))
    around = watch.around(place, node, host, profiling.Demand(1.0, 0.0, 0.0))
    assert around[profiling.C_A] == pytest.approx(0.3 / 4)  # of the host's four CPUs
    assert around[profiling.C_U] == 0.0  # itself is no neighbour


def test_a_task_beside_a_guessed_one_teaches_nothing():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(since_s=0.0))
    watch.placed(model.TaskId("b"), running_task("h0v1", guessed=True, since_s=1.0, task_class="new"))
    watch.rate(model.ClassId("new"), profiling.Demand(0.5, 0.0, 0.0), 4.0)
    assert watch.gone(model.TaskId("a"), 10.0) is None
    watch.placed(model.TaskId("c"), running_task(since_s=10.0))
    assert watch.gone(model.TaskId("c"), 12.0) is not None


def test_a_better_known_demand_counts_for_what_runs_already():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0, guessed=True))
    watch.rate(model.ClassId("c"), profiling.Demand(0.25, 0.0, 0.0), 5.0)
    assert watch.use()[0, 0] == 0.25


def test_a_task_with_remote_input_keeps_its_demand_and_the_others_of_its_class_do_not():
    watch = monitor()
    watch.placed(model.TaskId("a"), dataclasses.replace(running_task(cpu=1.0), is_remote=True))
    watch.placed(model.TaskId("b"), running_task("h1v1", cpu=1.0, guessed=True))
    watch.rate(model.ClassId("c"), profiling.Demand(0.25, 0.0, 0.0), 5.0)
    assert watch.use()[0].tolist() == [1.0, 0.0, 0.0, 0.25]


def test_instruments_add_what_the_tasks_do_not_explain():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0))
    watch.measured(model.NodeName("h0v0"), {"cpu_cores": 1.75, "disk_bytes_per_s": 40e6}, 5.0)
    assert watch.use()[:, 0].tolist() == pytest.approx([1.75, 0.2, 0.2])
    watch.measured(model.NodeName("h0v0"), {"cpu_cores": 0.5, "disk_bytes_per_s": 0.0}, 10.0)
    assert watch.use()[:, 0].tolist() == pytest.approx([1.0, 0.0, 0.0])


def test_a_reducer_of_which_nothing_is_known_counts_by_what_instruments_show():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0, guessed=True, idles=True))
    watch.measured(model.NodeName("h0v0"), {"cpu_cores": 0.25}, 5.0)
    assert watch.use()[0, 0] == 0.25
    watch.rate(model.ClassId("c"), profiling.Demand(0.25, 0.0, 0.0), 6.0)
    assert watch.use()[0, 0] == 0.25


def test_a_reducer_that_ends_before_the_first_report_of_its_node_is_counted_out_once():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0, guessed=True, idles=True))
    watch.gone(model.TaskId("a"), 3.0)
    watch.measured(model.NodeName("h0v0"), {}, 5.0)
    assert watch.use()[0, 0] == 0.0


def test_a_map_of_which_nothing_is_known_counts_by_its_guess_whatever_instruments_show():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(cpu=1.0, guessed=True))
    watch.measured(model.NodeName("h0v0"), {"cpu_cores": 0.25}, 5.0)
    assert watch.use()[0, 0] == 1.0


def test_other_nodes_leave_what_runs_as_it_is():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task("h1v0", cpu=0.5))
    watch.adopt(core.layout([*hosts(2), core.node("a0", server="a")]))
    assert watch.use()[0].tolist() == [0.0, 0.0, 0.0, 0.5, 0.0]
    assert watch.hosts.names == ("a", "h0", "h1")


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1), st.floats(0, 5)), max_size=20))
def test_after_all_have_ended_nothing_is_used(tasks):
    watch, now_s, names = monitor(), 0.0, hosts(2)
    for i, (node, cpu, pause_s) in enumerate(tasks):
        now_s += pause_s
        watch.placed(model.TaskId(str(i)), running_task(names[node].name, cpu=cpu, since_s=now_s))
    for i in range(len(tasks)):
        watch.gone(model.TaskId(str(i)), now_s + i)
    assert watch.use() == pytest.approx(0.0, abs=1e-9)
    assert watch.running.tolist() == [0, 0]


def test_the_time_that_tasks_waited_for_the_disk_is_the_least_that_it_was_busy():
    watch = monitor()
    watch.measured(model.NodeName("h0v0"), {"cpu_cores": 0.0, "io_pressure": 0.5}, 1.0)
    assert watch.use()[1:, 0].tolist() == [0.25, 0.25]
    watch.placed(model.TaskId("a"), running_task(cpu=0.0, read=0.2))
    watch.measured(model.NodeName("h0v0"), {"cpu_cores": 0.0, "io_pressure": 0.1}, 2.0)
    assert watch.use()[1:, 0].tolist() == [0.2, 0.0]


def test_bytes_count_where_both_are_measured():
    watch = monitor()
    watch.measured(model.NodeName("h0v0"), {"disk_bytes_per_s": 10e6, "io_pressure": 0.9}, 1.0)
    assert watch.use()[1:, 0].tolist() == [0.05, 0.05]


def test_instruments_that_fell_silent_leave_what_tasks_request():
    watch, name = monitor(), model.NodeName("h0v0")
    watch.placed(model.TaskId("a"), running_task(cpu=0.5, guessed=True, idles=True))
    watch.measured(name, {"cpu_cores": 1.75, "system_cpu_cores": 0.25, "disk_bytes_per_s": 50e6}, 1.0)
    assert (watch.use()[0, 0], watch.instrumented[0], watch.beyond[0]) == (1.75, True, 0.25)
    watch.measured(name, {}, 60.0)
    assert (watch.use()[:, 0].tolist(), watch.instrumented[0], watch.beyond[0]) == ([1.0, 0.0, 0.0], False, 0.0)
    watch.measured(name, {"cpu_cores": 0.25}, 75.0)
    assert watch.use()[0, 0] == 0.25
    watch.gone(model.TaskId("a"), 80.0)
    watch.measured(name, {}, 90.0)
    assert watch.use()[0, 0] == 0.0


def test_disk_figures_alone_do_not_say_what_the_cpus_do():
    watch, name = monitor(), model.NodeName("h0v0")
    watch.placed(model.TaskId("a"), running_task(cpu=1.0, guessed=True, idles=True))
    watch.measured(name, {"cpu_cores": 1.5, "system_cpu_cores": 0.5}, 1.0)
    watch.measured(name, {"io_pressure": 0.0}, 2.0)
    assert (watch.use()[0, 0], watch.instrumented[0], watch.beyond[0]) == (1.5, True, 0.5)


def test_a_reducer_whose_class_became_known_is_not_left_behind():
    watch = monitor()
    watch.placed(model.TaskId("a"), running_task(guessed=True, idles=True))
    watch.rate(model.ClassId("c"), profiling.Demand(0.5, 0.0, 0.0), 1.0)
    watch.gone(model.TaskId("a"), 2.0)
    assert not watch._left_to_instruments
