"""Reducers that wait for maps give their CPU to them for a while."""

import dataclasses

import pytest

from boathouse_policies import framework, model
from boathouse_policies.ikayak import Config, suspension
from boathouse_policies.ikayak.suspension import Suspension
from tests.builders import core
from tests.builders.core_ikayak import ONE, IKayakShell


@pytest.mark.parametrize(("factor", "seconds"), [(0.0, 0), (0.15, 0), (0.1, 0), (0.5, 105), (1.0, 255)])
def test_how_long_a_reducer_is_suspended(factor, seconds):
    assert suspension.length_s(factor, Config()) == pytest.approx(seconds)


def test_a_larger_weight_makes_it_shorter():
    assert suspension.length_s(0.5, Config(weight=2.0)) == pytest.approx((0.25 - 0.15) * 300)


def test_the_delay_factor_is_sparks_share_of_the_cpu():
    for shell, factor in ((shared_node(spark=3000)[0], 3 / 8), (IKayakShell(1), 0.0)):
        assert lending(shell).delay_factor(shell.ledger.snapshot(0.0)) == factor


def shared_node(*, waiting=4, more_maps=2, spark=3000, **config) -> tuple[IKayakShell, dict]:
    """A node of 8 cores, full: Spark, one map, and reducers of a job that waits for maps; λ is spark's share."""
    shell = IKayakShell(1, **config)
    job = core.job("spark")
    executor = core.task_class(job, core.amount(spark, 1), "executor", stage=model.Stage.EXECUTOR)
    shell.report(core.submitted(job, executor))
    shell.run_task(core.task(executor), executor, "n0")
    classes = shell.run("mr", "n0", maps=1, reduces=(8000 - spark) // 1000 - 1, more_maps=more_maps)
    if waiting:
        shell.submit_stages("other", map=(waiting, ONE))
    return shell, classes


def advised(shell, now_s=0.0):
    return [decision for decision in shell.cycle(now_s).decisions if isinstance(decision, model.Suspend | model.Resume)]


def test_reducers_that_lack_map_output_are_suspended():
    found = advised(shared_node()[0])
    assert [decision.task.id for decision in found] == [f"ns/mr/reduce-{i}" for i in range(4)]
    assert [decision.until_s for decision in found] == [pytest.approx((3 / 8 - 0.15) * 300)] * 4
    assert {(decision.resources.cpu_milli, decision.resources.memory_bytes) for decision in found} == {
        (1, ONE.memory_bytes)
    }


def test_a_reducer_is_suspended_once_in_an_interval():
    shell, _ = shared_node()
    assert len(advised(shell)) == 4
    assert advised(shell, 200.0) == []
    assert len(advised(shell, 300.0)) == 4


def test_a_reducer_with_all_its_map_output_is_never_suspended():
    shell, classes = shared_node(more_maps=0)
    shell.finish_task(classes["map"], 0, 5.0)
    assert advised(shell, 5.0) == []


def test_a_reducer_that_is_past_its_copy_is_not_suspended():
    shell, classes = shared_node()
    shell.report_reducer(classes["reduce"], 0, 5.0, 0.4, phase="sort")
    assert [decision.task.id for decision in advised(shell, 5.0)] == [f"ns/mr/reduce-{i}" for i in range(1, 4)]


def test_a_reducer_that_has_ended_is_not_suspended():
    shell, classes = shared_node()
    shell.finish_task(classes["reduce"], 0, 5.0)
    shell.ledger.observe(core.account("foreign", size=ONE))  # the node is full again
    assert [decision.task.id for decision in advised(shell, 5.0)] == [f"ns/mr/reduce-{i}" for i in range(1, 4)]


def test_little_spark_means_no_suspension():
    assert advised(shared_node(spark=1000)[0]) == []


def test_nobody_is_suspended_for_maps_that_do_not_wait():
    assert advised(shared_node(waiting=0)[0]) == []


def test_nobody_is_suspended_where_no_map_has_the_memory():
    shell, _ = shared_node()
    shell.ledger.observe(core.account("foreign", size=core.amount(0, 10)))
    assert advised(shell) == []


def test_nobody_is_suspended_where_an_executor_is_to_go():
    shell, _ = shared_node(waiting=0)
    shell.submit_stages("more", executor=(1, core.amount(5000, 4)))
    shell.cycle()
    assert shell.reserved == {"n0"}
    shell.submit_stages("other", map=(4, ONE))
    assert advised(shell) == []


def test_they_run_again_at_once_when_all_maps_have_ended():
    shell, classes = shared_node(more_maps=0)
    advised(shell)
    shell.finish_task(classes["map"], 0, 5.0)
    found = advised(shell, 5.0)
    assert {type(decision) for decision in found} == {model.Resume}
    assert [(decision.task.id, decision.resources, decision.reason) for decision in found][:1] == [
        ("ns/mr/reduce-0", ONE, suspension.READY)
    ]


def test_they_run_again_at_once_when_no_map_waits():
    shell, _ = shared_node()
    advised(shell)
    shell.queue.withdraw(model.JobId("other"))
    assert {decision.reason for decision in advised(shell, 5.0)} == {suspension.NO_USE}


def test_they_run_again_at_once_when_an_executor_is_to_go_there():
    shell, _ = shared_node(waiting=9)
    lend(shell)
    shell.submit_stages("more", executor=(1, core.amount(4000, 4)))
    shell.cycle(1.0)
    assert {decision.reason for decision in advised(shell, 5.0)} == {suspension.KEPT}


def test_time_suspended_counts_as_time_away():
    shell, classes = shared_node()
    shell.report_reducer(classes["reduce"], 0, 0.0, 0.0)
    until_s = advised(shell)[0].until_s
    advised(shell, 200.0)
    reducer = shell.book.reducers[model.TaskId("ns/mr/reduce-0")]
    assert reducer.task.pause is None
    shell.report_reducer(classes["reduce"], 0, 200.0, 0.1)
    assert reducer.history.times_s == [pytest.approx(200.0 - until_s)]


def lending(shell) -> Suspension:
    return next(question for question in shell.profile.filters if isinstance(question, Suspension))


def refusing_shared_node() -> tuple[IKayakShell, dict]:
    shell, classes = shared_node()
    shell.refuses = True
    assert len(advised(shell)) == 4
    return shell, classes


def test_a_decision_to_suspend_alone_changes_nothing_in_the_book():
    shell, classes = refusing_shared_node()
    reducer = shell.book.reducers[model.TaskId("ns/mr/reduce-0")]
    assert reducer.task.pause is None
    shell.report_reducer(classes["reduce"], 0, 15.0, 0.2)
    assert reducer.history.times_s == [15.0]


def test_a_reducer_whose_suspension_was_refused_lends_nothing_and_is_left_alone_for_an_interval():
    shell, _ = refusing_shared_node()
    assert [advised(shell, now_s) for now_s in (1.0, 299.0)] == [[], []]
    assert not lending(shell).paused
    assert len(advised(shell, 300.0)) == 4


def test_a_cycle_reckons_with_the_suspensions_that_it_decides():
    shell, _ = shared_node()
    assert len(advised(shell)) == 4
    found = lending(shell).paused
    assert {(reducer.task.task, until_s) for reducer, until_s in found.items()} == {
        (decision.task.id, decision.until_s) for decision in shell.decided if isinstance(decision, model.Suspend)
    }


def test_a_suspended_reducer_holds_its_room_for_the_rest_of_the_suspension_too():
    shell, classes = shared_node()
    shell.report_reducer(classes["reduce"], 0, 60.0, 0.3)
    reducer = shell.book.reducers[model.TaskId("ns/mr/reduce-0")]
    before = shell.book.left_s([reducer], 60.0, {})[0]
    until_s = advised(shell, 60.0)[0].until_s
    for_s, paused = until_s - 60.0, {reducer: until_s}
    assert shell.book.left_s([reducer], 60.0, paused)[0] == pytest.approx(before + for_s)
    assert shell.book.left_s([reducer], 60.0 + for_s / 2, paused)[0] == pytest.approx(before + for_s / 2)


def test_off_means_no_controller():
    shell, _ = shared_node(suspension=False)
    assert advised(shell) == []


# Who gets the CPU


def lend(shell):
    """What was decided has been carried out: four reducers keep a millicore each."""
    for decision in advised(shell):
        account = shell.ledger.account(decision.task.id)
        shell.free(shell.ledger.observe(dataclasses.replace(account, resources=decision.resources)))


def jobs_placed(shell, now_s=1.0):
    return sorted({task.split("/")[0] for task, _ in core.where(shell.cycle(now_s))})


def test_maps_of_the_same_job_go_first():
    shell, _ = shared_node(waiting=0)
    shell.submit_stages("a-before-it", submitted_s=-1.0, map=(9, ONE))
    own = core.task_class(core.job("mr"), ONE, "map", stage=model.Stage.MAP)
    reduce = core.task_class(core.job("mr"), ONE, "reduce", stage=model.Stage.REDUCE)
    shell.queue.submit(core.job("mr"), [own, reduce], [core.task(own, i) for i in range(5, 12)], placed=shell.ledger)
    lend(shell)
    assert jobs_placed(shell) == ["mr"]


def test_then_maps_of_others_but_no_executor_and_no_reducer():
    shell, _ = shared_node(placement=False)
    shell.submit_stages("reducing", submitted_s=-1.0, reduce=(1, core.amount(100, 1)))
    shell.submit_stages("more", submitted_s=-1.0, executor=(1, core.amount(1000, 1)))
    lend(shell)
    assert jobs_placed(shell) == ["other"]


def test_a_map_does_without_the_crumbs_that_suspended_reducers_keep():
    shell, _ = shared_node()
    lend(shell)
    sizes = [placed.resources.cpu_milli for placed in core.placements(shell.cycle(1.0))]
    assert len(sizes) == 4
    assert min(sizes) == 1000 - 4


def test_the_reason_says_whose_cpu_it_is():
    shell, _ = shared_node(waiting=1, placement=False)
    shell.submit_stages("more", executor=(1, core.amount(1000, 1)))
    lend(shell)
    plan = shell.cycle(1.0)
    found = {refusal.reason: refusal.nodes for refusal in plan.diagnosis(model.ClassId("more/executor")).refusals}
    assert found == {"node(s) whose free CPU is lent to maps by a suspended reducer": 1}


def test_lent_cpu_is_free_for_all_once_the_time_is_up():
    shell, _ = shared_node(waiting=1, placement=False)
    lend(shell)
    shell.submit_stages("more", executor=(1, core.amount(1000, 1)))
    shell.cycle()
    assert jobs_placed(shell, 299.0) == ["more"]


def test_what_is_lent_ends_with_its_time_even_if_nobody_is_asked():
    shell, _ = shared_node(waiting=1)
    lend(shell)
    found = []
    for now_s in (1.0, 299.0):
        state = framework.CycleState(shell.ledger.snapshot(now_s))
        lending(shell).begins(shell.queue, state)
        found.append(int(lending(shell).free(state)[model.CPU, 0]))
    assert found == [0, 3996]


def test_maps_that_ended_before_this_process_began_count_among_those_of_the_job():
    shell, job = IKayakShell(1), core.job("job")
    maps = core.task_class(job, stage=model.Stage.MAP)
    shell.report(core.submitted(job, maps, tasks={maps.id: 1}, totals={maps.id: 20}))
    assert shell.book.jobs[job.id].left_share == 1 / 20


def test_reports_of_a_reducer_whose_job_has_begun_a_later_step_tell_nothing():
    shell = IKayakShell(1)
    classes = shell.run("job", "n0", maps=1, reduces=1)
    shell.submit_stages("job", map=(1, core.amount(1000, 1)))
    shell.report_reducer(classes["reduce"], 0, 10.0, 0.5)
    (reducer,) = shell.book.reducers.values()
    assert reducer.history is None or not reducer.history.samples
