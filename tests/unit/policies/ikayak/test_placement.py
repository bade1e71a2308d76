"""Where executors go, and which nodes are kept for them."""

import pytest

from boathouse_policies import ikayak, model
from tests.builders import core
from tests.builders.core_ikayak import IKayakShell

WHOLE = core.amount(8000, 16)
MOST = core.amount(6000, 8)
HALF = core.amount(4000, 8)


def test_an_executor_is_placed_on_the_node_with_most_free():
    shell = IKayakShell([core.node("a", WHOLE), core.node("b", core.amount(16000, 32)), core.node("c", WHOLE)])
    shell.submit_stages("spark", executor=(1, MOST))
    assert core.nodes_of(shell.cycle()) == ["b"]


def test_executors_spread_as_what_is_free_shrinks():
    shell = IKayakShell(3)
    shell.submit_stages("spark", executor=(3, MOST))
    assert sorted(core.nodes_of(shell.cycle())) == ["n0", "n1", "n2"]


def test_where_none_is_free_a_node_with_maps_is_kept():
    shell = IKayakShell(3)
    shell.run("a", "n0", reduces=8)
    shell.run("b", "n1", maps=8)
    shell.run("c", "n2", reduces=8)
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    assert shell.reserved == {"n1"}


def test_among_reducers_the_node_with_the_least_predicted_wait_is_kept():
    shell = IKayakShell(3)
    slow = shell.run("slow", "n0", reduces=8)["reduce"]
    two = shell.run("fast", "n1", reduces=8)["reduce"]
    shell.run("none", "n2", reduces=8)
    for index in range(8):
        shell.report_reducer(slow, index, 60.0, 0.1)
        shell.report_reducer(two, index, 60.0, 0.3)
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle(60.0)
    assert shell.reserved == {"n1"}


def test_nobody_else_may_use_a_kept_node():
    shell = IKayakShell(1)
    maps = shell.run("mr", "n0", maps=8)["map"]
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    shell.submit_stages("other", map=(8, core.amount(1000, 1)))
    shell.finish_task(maps, 0, 5.0)
    assert core.nodes_of(shell.cycle(5.0)) == []
    for index in range(1, 6):
        shell.finish_task(maps, index, 6.0)
    assert core.where(shell.cycle(6.0)) == [("spark/executor-0", "n0")]


def test_once_the_executor_is_placed_the_node_is_open_again():
    shell = IKayakShell(1)
    maps = shell.run("mr", "n0", maps=8)["map"]
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    for index in range(7):
        shell.finish_task(maps, index, 6.0)
    assert core.nodes_of(shell.cycle(6.0)) == ["n0"]
    assert shell.reserved == set()
    shell.submit_stages("other", map=(1, core.amount(1000, 1)))
    assert core.nodes_of(shell.cycle(7.0)) == ["n0"]


def test_a_node_is_given_up_when_the_executor_is_placed_elsewhere():
    shell = IKayakShell(2)
    shell.run("mr", "n0", maps=8)
    two = shell.run("other", "n1", reduces=8)["reduce"]
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    assert shell.reserved == {"n0"}
    for index in range(8):
        shell.finish_task(two, index, 6.0)
    assert core.nodes_of(shell.cycle(6.0)) == ["n1"]
    assert shell.reserved == set()


def test_who_waits_for_a_kept_node_is_woken_when_it_is_given_up():
    shell = IKayakShell(2)
    shell.run("mr", "n0", maps=7)
    two = shell.run("other", "n1", reduces=8)["reduce"]
    shell.submit_stages("spark", executor=(1, WHOLE))
    shell.cycle(1.0)
    shell.submit_stages("small", map=(1, core.amount(1000, 1)))
    assert core.nodes_of(shell.cycle()) == []
    for index in range(8):
        shell.finish_task(two, index, 6.0)
    assert set(core.where(shell.cycle(6.0)) + core.where(shell.cycle(6.0))) == {
        ("spark/executor-0", "n1"),
        ("small/map-0", "n0"),
    }


def test_a_node_of_an_earlier_tier_replaces_a_kept_one():
    shell = IKayakShell(2)
    shell.run("a", "n0", reduces=8)
    two = shell.run("b", "n1", reduces=8)["reduce"]
    for index in range(8):
        shell.report_reducer(two, index, 60.0, 0.3)
    shell.submit_stages("spark", executor=(1, MOST), submitted_s=0.0)
    shell.cycle(60.0)
    assert shell.reserved == {"n1"}
    for task in shell.running.on("n0"):  # they are maps now
        del shell.book.reducers[task.task]
        shell.book._map_ends_s[task.task] = 60.0
    shell.cycle(75.0)
    assert shell.reserved == {"n0"}


def test_as_many_nodes_are_kept_as_executors_wait_but_not_more_than_half():
    shell = IKayakShell(6)
    for i in range(6):
        shell.run(f"mr{i}", f"n{i}", maps=8)
    shell.submit_stages("spark", executor=(2, MOST))
    shell.cycle()
    assert len(shell.reserved) == 2
    shell.submit_stages("more", executor=(9, MOST))
    shell.cycle()
    assert len(shell.reserved) == 3


def test_two_executors_that_fit_beside_each_other_need_one_node():
    shell = IKayakShell(2)
    shell.run("a", "n0", maps=8)
    shell.run("b", "n1", reduces=8)
    shell.submit_stages("spark", executor=(2, HALF))
    shell.cycle()
    assert shell.reserved == {"n0"}


def test_a_minimum_is_what_nodes_are_kept_for_once_it_runs_none_is():
    shell = IKayakShell(4)
    shell.submit_stages("spark", executor=(3, WHOLE), gang_min=1)
    for i in range(4):
        shell.run(f"mr{i}", f"n{i}", maps=8)
    shell.cycle()
    assert len(shell.reserved) == 1
    (reserved,) = shell.reserved
    task_class = next(iter(shell.book.jobs[model.JobId(f"mr{reserved[1]}")].classes.values()))
    for index in range(8):
        shell.finish_task(task_class, index, 6.0)
    assert core.nodes_of(shell.cycle(6.0)) == [reserved]
    shell.cycle(60.0)
    assert shell.reserved == set()


def test_the_oldest_minimum_takes_the_nodes_of_others_and_more_than_half():
    shell = IKayakShell(4)
    for i in range(4):
        shell.run(f"mr{i}", f"n{i}", maps=8)
    shell.submit_stages("single", executor=(1, WHOLE))
    shell.cycle()
    shell.now_s = 1.0
    shell.submit_stages("old", executor=(4, WHOLE), gang_min=4)
    shell.submit_stages("young", executor=(4, WHOLE), gang_min=4)
    shell.cycle()
    assert sorted(shell.queue.reserved.values()) == ["old/executor", "single/executor"]
    shell.queue.withdraw(model.JobId("single"))
    shell.cycle(20.0)
    assert list(shell.queue.reserved.values()) == ["old/executor"] * 4


def test_a_younger_minimum_does_not_take_an_older_ones_nodes():
    shell = IKayakShell(2, kept_share=1.0)
    for i in range(2):
        shell.run(f"mr{i}", f"n{i}", maps=8)
    shell.submit_stages("old", executor=(2, WHOLE), gang_min=2)
    shell.cycle()
    shell.now_s = 1.0
    shell.submit_stages("young", executor=(2, WHOLE), gang_min=2)
    shell.cycle()
    assert set(shell.queue.reserved.values()) == {"old/executor"}


def test_a_gang_keeps_its_reservations_when_room_is_freed_before_the_map_is_known_to_have_ended():
    shell = IKayakShell(2)
    for i in range(2):
        shell.run(f"mr{i}", f"n{i}", maps=2, size=HALF)
    shell.submit_stages("spark", driver=(1, core.amount(2000, 2)), executor=(1, core.amount(7000, 8)), gang_min=1)
    shell.cycle()
    assert shell.reserved == {"n0", "n1"}
    shell.end("ns/mr0/map-0")
    assert core.nodes_of(shell.cycle(1.0)) == []
    assert shell.reserved == {"n0", "n1"}


def test_a_minimum_holds_on_to_a_node_that_has_no_predicted_wait_any_more():
    shell = IKayakShell(2)
    classes = [shell.run(f"mr{i}", f"n{i}", maps=1, size=WHOLE)["map"] for i in range(2)]
    shell.submit_stages("spark", executor=(2, MOST), gang_min=2)
    shell.cycle()
    shell.finish_task(classes[0], 0, 1.0)
    shell.ledger.observe(core.account("daemon", "n0", HALF))
    assert core.nodes_of(shell.cycle(20.0)) == []
    assert shell.reserved == {"n0", "n1"}


def test_the_reason_names_the_node():
    shell = IKayakShell(1)
    shell.run("mr", "n0", maps=8)
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    shell.queue.nodes_changed()
    plan = shell.cycle(30.0)
    hold = next(decision for decision in plan.decisions if isinstance(decision, model.Reservation | model.Wait))
    assert hold.verdict.message == "n0 is reserved for it until there is room"
    assert hold.until_s == 30.0 + shell.config.review_s


def test_reservations_end_with_their_job():
    shell = IKayakShell(1)
    shell.run("mr", "n0", maps=8)
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    shell.queue.withdraw(model.JobId("spark"))
    assert shell.reserved == set()


@pytest.mark.parametrize("stage", ["map", "reduce"])
def test_nothing_is_kept_for_maps_and_reducers(stage):
    shell = IKayakShell(1)
    shell.run("mr", "n0", reduces=8)
    shell.submit_stages("other", **{stage: (1, MOST)})
    shell.cycle()
    assert shell.reserved == set()


def test_without_placement_nothing_is_kept():
    shell = IKayakShell(1, placement=False)
    shell.run("mr", "n0", maps=8)
    shell.submit_stages("spark", executor=(1, MOST))
    shell.cycle()
    assert shell.reserved == set()


def test_an_executor_that_no_node_could_hold_keeps_none():
    shell = IKayakShell(1)
    shell.run("mr", "n0", maps=8)
    shell.submit_stages("spark", executor=(1, core.amount(9000, 8)))
    shell.cycle()
    assert shell.reserved == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [("least_share", 0), ("kept_share", 1.1), ("overhead", -1), ("interval_s", 0), ("crumbs", 1.0), ("trust", 0)],
)
def test_constants_without_meaning_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        ikayak.Config(**{name: value})
