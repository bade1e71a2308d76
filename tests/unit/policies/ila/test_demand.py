"""Task profiling of ILA: equation 7, and what runs where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse_policies import framework, ila, model
from boathouse_policies.ila import metrics
from boathouse_policies.ila.book import Book, Running
from boathouse_policies.ila.demand import Demands, measured
from tests.unit.policies import builders as make
from tests.unit.policies.ila.shell import hosts

MAP = make.task_class(make.job(kind="sort"), stage=model.Stage.MAP)


def test_before_a_task_has_ended_the_demand_is_high():
    assert Demands(ila.Config()).of(MAP) == metrics.Demand(1.0, 0.25, 0.25)


def test_the_first_task_tells_the_demand_alone():
    demands = Demands(ila.Config())
    assert demands.ended(MAP.id, metrics.Demand(0.5, 0.1, 0.0)) == metrics.Demand(0.5, 0.1, 0.0)


def test_later_ones_count_for_four_fifths():
    demands = Demands(ila.Config())
    demands.ended(MAP.id, metrics.Demand(1.0, 0.0, 0.0))
    demands.ended(MAP.id, metrics.Demand(0.0, 1.0, 0.0))
    assert demands.of(MAP) == pytest.approx((0.2, 0.8, 0.0))


@given(st.lists(st.floats(0, 2), min_size=1, max_size=30))
def test_the_demand_stays_within_what_was_measured(cpus):
    demands = Demands(ila.Config())
    for cpu in cpus:
        demands.ended(MAP.id, metrics.Demand(cpu, 0.0, 0.0))
    assert min(cpus) - 1e-9 <= demands.of(MAP).cpu <= max(cpus) + 1e-9


def again(config, **job):
    """A second job, after one of the program `sort` had used half a CPU."""
    demands, first = Demands(config), make.job("first", kind="sort")
    demands.submitted(first, (make.task_class(first, stage=model.Stage.MAP),))
    demands.ended(model.ClassId("first/map"), metrics.Demand(0.5, 0.0, 0.0))
    second = make.job("second", **job)
    one = make.task_class(second, stage=model.Stage.MAP)
    demands.submitted(second, (one,))
    return demands, one


def test_the_next_job_of_a_program_begins_with_what_was_measured_of_the_last():
    demands, one = again(ila.Config(), kind="sort")
    assert demands.knows(one.id)
    assert demands.of(one).cpu == 0.5


@pytest.mark.parametrize(("config", "kind"), [(ila.Config(), "grep"), (ila.Config(by_program=False), "sort")])
def test_other_programs_begin_high_and_so_do_all_where_configured(config, kind):
    demands, one = again(config, kind=kind)
    assert not demands.knows(one.id)
    assert demands.of(one).cpu == 1.0


def test_a_restart_keeps_what_programs_use():
    demands, _ = again(ila.Config(), kind="sort")
    fresh = Demands(ila.Config())
    fresh.load(demands.dump())
    third = make.job("third", kind="sort")
    fresh.submitted(third, (make.task_class(third, stage=model.Stage.MAP),))
    assert fresh.of(make.task_class(third, stage=model.Stage.MAP)).cpu == 0.5


def test_counters_become_rates_of_a_task_without_neighbours():
    counters = {"cpu_s": 5.0, "read_bytes": 100e6, "remote_bytes": 100e6, "written_bytes": 300e6, "spilled_bytes": 50e6}
    assert measured(counters, 10.0, 100.0) == pytest.approx((0.5, 0.25, 0.35))
    assert measured(counters, 10.0, 100.0, far=True).read == pytest.approx(0.15)


# The book


def book(nodes=None):
    axis = model.Axis()
    ledger = framework.Ledger(axis)
    for one in nodes or hosts(2):
        ledger.set_node(one)
    made = Book(ila.Config())
    made.adopt(ledger.snapshot(0.0).layout)
    return made


def running(node="h0v0", cpu=1.0, since_s=0.0, guessed=False, idles=False, one="c"):
    demand = metrics.Demand(cpu, 0.0, 0.0)
    return Running(model.ClassId(one), model.NodeName(node), 1000, demand, False, guessed, idles, since_s)


def test_what_is_used_is_the_sum_of_what_runs():
    one = book()
    one.placed(model.TaskId("a"), running(cpu=1.0))
    one.placed(model.TaskId("b"), running(cpu=0.5))
    one.placed(model.TaskId("c"), running("h1v1", cpu=0.25))
    assert one.use()[0].tolist() == [1.5, 0.0, 0.0, 0.25]
    assert one.running.tolist() == [2, 1]
    one.gone(model.TaskId("a"), 1.0)
    assert one.use()[0].tolist() == [0.5, 0.0, 0.0, 0.25]


def test_neighbours_count_for_the_time_that_they_were_there():
    one = book()
    one.placed(model.TaskId("a"), running(cpu=1.0))
    one.placed(model.TaskId("b"), running("h0v1", cpu=1.0, since_s=5.0))
    one.gone(model.TaskId("b"), 8.0)
    node, host = one.gone(model.TaskId("a"), 10.0)
    assert (node.cpu, host.cpu) == pytest.approx((1.0, 1.3))
    around = one.around((node, host), metrics.Demand(1.0, 0.0, 0.0), model.NodeName("h0v0"))
    assert around[metrics.C_A] == pytest.approx(0.3 / 4)  # of the host's four CPUs
    assert around[metrics.C_U] == 0.0  # itself is no neighbour


def test_a_task_beside_a_guessed_one_teaches_nothing():
    one = book()
    one.placed(model.TaskId("a"), running(since_s=0.0))
    one.placed(model.TaskId("b"), running("h0v1", guessed=True, since_s=1.0, one="new"))
    one.rate(model.ClassId("new"), metrics.Demand(0.5, 0.0, 0.0), 4.0)
    assert one.gone(model.TaskId("a"), 10.0) is None
    one.placed(model.TaskId("c"), running(since_s=10.0))
    assert one.gone(model.TaskId("c"), 12.0) is not None


def test_a_better_known_demand_counts_for_what_runs_already():
    one = book()
    one.placed(model.TaskId("a"), running(cpu=1.0, guessed=True))
    one.rate(model.ClassId("c"), metrics.Demand(0.25, 0.0, 0.0), 5.0)
    assert one.use()[0, 0] == 0.25


def test_instruments_add_what_the_tasks_do_not_explain():
    one = book()
    one.placed(model.TaskId("a"), running(cpu=1.0))
    one.measured(model.NodeName("h0v0"), {"cpu_cores": 1.75, "disk_bytes_per_s": 40e6}, 5.0)
    assert one.use()[:, 0].tolist() == pytest.approx([1.75, 0.2, 0.2])
    one.measured(model.NodeName("h0v0"), {"cpu_cores": 0.5, "disk_bytes_per_s": 0.0}, 10.0)
    assert one.use()[:, 0].tolist() == pytest.approx([1.0, 0.0, 0.0])


def test_a_reducer_of_which_nothing_is_known_counts_by_what_instruments_show():
    one = book()
    one.placed(model.TaskId("a"), running(cpu=1.0, guessed=True, idles=True))
    one.measured(model.NodeName("h0v0"), {"cpu_cores": 0.25}, 5.0)
    assert one.use()[0, 0] == 0.25
    one.rate(model.ClassId("c"), metrics.Demand(0.25, 0.0, 0.0), 6.0)
    assert one.use()[0, 0] == 0.25


def test_a_map_of_which_nothing_is_known_counts_by_its_guess_whatever_instruments_show():
    one = book()
    one.placed(model.TaskId("a"), running(cpu=1.0, guessed=True))
    one.measured(model.NodeName("h0v0"), {"cpu_cores": 0.25}, 5.0)
    assert one.use()[0, 0] == 1.0


def test_other_nodes_leave_what_runs_as_it_is():
    one = book()
    one.placed(model.TaskId("a"), running("h1v0", cpu=0.5))
    axis = model.Axis()
    ledger = framework.Ledger(axis)
    for node in [*hosts(2), make.node("a0", server="a")]:
        ledger.set_node(node)
    one.adopt(ledger.snapshot(0.0).layout)
    assert one.use()[0].tolist() == [0.0, 0.0, 0.0, 0.5, 0.0]
    assert one.hosts.names == ("a", "h0", "h1")


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1), st.floats(0, 5)), max_size=20))
def test_after_all_have_ended_nothing_is_used(tasks):
    one, now_s, names = book(), 0.0, hosts(2)
    for i, (node, cpu, pause_s) in enumerate(tasks):
        now_s += pause_s
        one.placed(model.TaskId(str(i)), running(names[node].name, cpu=cpu, since_s=now_s))
    for i in range(len(tasks)):
        one.gone(model.TaskId(str(i)), now_s + i)
    assert one.use() == pytest.approx(0.0, abs=1e-9)
    assert one.running.tolist() == [0, 0]
