"""The ledger's states: assume, confirm, forget, gone."""

import pytest

from boathouse_policies import framework, model
from tests.builders import core


@pytest.fixture
def shell() -> core.Shell:
    """Two nodes of 4 CPUs and a job of two tasks, placed on n0 and n1 but not confirmed."""
    shell = core.Shell(core.nodes(2))
    shell.submit(count=2)
    shell.cycle()
    return shell


FIRST = model.TaskId("ns/job/map-0")


def free_cpu(shell: core.Shell, node: str = "n0") -> int:
    free = shell.ledger.free(model.NodeName(node))
    assert free is not None
    return int(free[model.CPU])


def confirmed(on: str | None = "n0", **fields) -> framework.Account:
    return core.account("job/map-0", on, **fields)


def test_what_is_assumed_is_deducted_at_once(shell):
    assert shell.ledger.state(FIRST) is framework.State.ASSUMED
    assert free_cpu(shell) == 3000


def test_the_watch_confirms_and_counts_nothing_twice(shell):
    shell.ledger.observe(confirmed())
    assert shell.ledger.state(FIRST) is framework.State.CONFIRMED
    assert free_cpu(shell) == 3000


def test_an_unbound_event_does_not_undo_an_assumption(shell):
    assert shell.ledger.observe(confirmed(on=None)) is None
    assert shell.ledger.state(FIRST) is framework.State.ASSUMED


def test_forgetting_gives_the_room_back_once(shell):
    assert shell.ledger.forget(FIRST) == framework.Freed(node=model.NodeName("n0"), queue=model.QueueName("default"))
    assert shell.ledger.forget(FIRST) is None
    assert free_cpu(shell) == 4000


def test_forgetting_what_the_watch_has_shown_changes_nothing(shell):
    shell.ledger.observe(confirmed())
    assert shell.ledger.forget(FIRST) is None
    assert free_cpu(shell) == 3000


def test_a_task_cannot_be_assumed_twice(shell):
    with pytest.raises(ValueError, match="assumed already"):
        shell.ledger.assume(core.create(on="n1"))


def test_the_truth_wins_where_the_watch_shows_another_node(shell):
    shell.ledger.observe(confirmed(on="n1"))
    assert (free_cpu(shell, "n0"), free_cpu(shell, "n1")) == (4000, 2000)


def test_the_end_of_an_earlier_pod_of_the_same_name_changes_nothing(shell):
    shell.ledger.observe(confirmed(uid=model.PodUid("new")))
    assert shell.ledger.gone(FIRST, model.PodUid("old")) is None
    assert shell.ledger.gone(FIRST, model.PodUid("new")) is not None
    assert FIRST not in shell.ledger


def test_a_new_pod_of_the_same_name_that_waits_replaces_the_old_one(shell):
    shell.ledger.observe(confirmed(uid=model.PodUid("old")))
    assert shell.ledger.observe(confirmed(on=None, uid=model.PodUid("new"))) is not None
    assert free_cpu(shell) == 4000


def test_a_node_that_flaps_is_charged_again_with_what_runs_on_it(shell):
    shell.ledger.observe(confirmed())
    assert shell.ledger.remove_node(model.NodeName("n0")) == ()
    assert shell.ledger.free(model.NodeName("n0")) is None
    shell.ledger.set_node(core.node("n0"))
    assert free_cpu(shell) == 3000


def test_assumptions_on_a_vanished_node_are_reverted_and_named(shell):
    assert shell.ledger.remove_node(model.NodeName("n0")) == (FIRST,)
    assert FIRST not in shell.ledger


def test_a_pod_may_be_seen_before_its_node():
    shell = core.Shell()
    shell.ledger.observe(confirmed(on="late"))
    shell.ledger.set_node(core.node("late"))
    assert free_cpu(shell, "late") == 3000


def test_a_resize_counts_the_larger_amount_until_the_watch_shows_it(shell):
    shell.ledger.observe(confirmed(size=core.amount(1000, 1)))
    shell.ledger.assume_resize(FIRST, core.amount(2000, 1))
    assert free_cpu(shell) == 2000
    shell.ledger.observe(confirmed(size=core.amount(1000, 1)))  # from before the resize
    assert free_cpu(shell) == 2000
    shell.ledger.observe(confirmed(size=core.amount(2000, 1)))
    shell.ledger.observe(confirmed(size=core.amount(500, 1)))
    assert free_cpu(shell) == 3500


def test_what_a_smaller_size_gives_back_counts_only_when_the_watch_shows_it(shell):
    shell.ledger.assume_resize(FIRST, core.amount(1, 1))
    assert free_cpu(shell) == 3000
    assert shell.ledger.observe(confirmed(size=core.amount(1, 1))) is not None
    assert free_cpu(shell) == 3999


def test_a_resize_that_failed_counts_what_was_shown_last(shell):
    shell.ledger.assume_resize(FIRST, core.amount(2000, 1))
    assert shell.ledger.forget_resize(FIRST) is not None
    assert shell.ledger.forget_resize(FIRST) is None
    assert free_cpu(shell) == 3000


def test_usage_is_charged_to_job_and_queue(shell):
    view = shell.view()
    assert view.job_usage(model.JobId("job"))[model.CPU] == 2000
    assert view.queue_usage(model.QueueName("default"))[model.PODS] == 2
    assert sum(view.job_usage(model.JobId("nobody"))) == 0


def test_what_is_held_of_a_node_that_does_not_exist_is_charged_to_nobody_until_it_is_there(shell):
    queue, ghost = model.QueueName("default"), core.nodes(3)[2]

    def pods() -> int:
        return int(shell.ledger.snapshot(0.0).queue_usage(queue)[model.PODS])

    before = pods()
    shell.ledger.observe(core.account("ghost", ghost.name, queue=queue))
    assert pods() == before
    shell.ledger.set_node(ghost)
    assert pods() == before + 1
    assert shell.ledger.queues_on(ghost.name) == {queue}
    shell.ledger.remove_node(ghost.name)
    assert pods() == before
    shell.ledger.gone(model.TaskId("ns/ghost"))
    shell.ledger.set_node(ghost)
    assert pods() == before


def test_tasks_of_a_class_are_counted_where_they_start_together(shell):
    shell.submit("gang", count=2, gang_min=2)
    shell.cycle()
    assert shell.view().by_class == {"gang/map": 2}
    shell.end("ns/gang/map-0")
    assert shell.view().by_class == {"gang/map": 1}


def test_a_snapshot_does_not_move(shell):
    view = shell.view()
    before = view.requested.copy()
    shell.end(FIRST)
    shell.ledger.set_node(core.node("n9"))
    assert (view.requested == before).all()
    assert view.job_usage(model.JobId("job"))[model.PODS] == 2
    assert len(view.nodes) == 2


def test_a_snapshot_does_not_move_even_where_nobody_looked_before_the_change(shell):
    view = shell.view()
    shell.end(FIRST)
    shell.ledger.set_node(core.node("m9"))  # comes first by name
    shell.view()
    assert view.requested[model.CPU].tolist() == [1000, 1000]
    assert view.job_usage(model.JobId("job"))[model.CPU] == 2000
    assert view.queue_usage(model.QueueName("default"))[model.PODS] == 2


def test_a_resource_observed_later_is_counted_beside_what_was_held_before(shell):
    gpus = model.Resources.of(cpu_milli=1000, extended={"nvidia.com/gpu": 2})
    shell.ledger.observe(core.account("gpu", on="n0", size=gpus))
    shell.end(FIRST)
    assert shell.view().requested[:, 0].tolist() == [1000, 0, 0, 1, 2]
    shell.end("ns/gpu")
    assert shell.view().requested[:, 0].sum() == 0


def test_the_comparison_with_a_list_sets_assumptions_aside(shell):
    assert not shell.ledger.compare([], core.nodes(2))


def test_the_comparison_names_each_kind_of_drift(shell):
    shell.ledger.observe(confirmed())
    shell.ledger.observe(core.account("ghost"))
    listed = [confirmed(size=core.amount(1, 1)), core.account("missing"), core.account("pending", on=None)]
    drift = shell.ledger.compare(listed, [core.node("n0", unschedulable=True), core.node("n2")])
    assert drift == framework.Drift(
        missing_pods=(model.TaskId("ns/missing"),),
        ghost_pods=(model.TaskId("ns/ghost"),),
        different_pods=(FIRST,),
        missing_nodes=(model.NodeName("n2"),),
        ghost_nodes=(model.NodeName("n1"),),
        different_nodes=(model.NodeName("n0"),),
    )


def test_a_heartbeat_that_changes_nothing_is_no_change(shell):
    assert not shell.ledger.set_node(core.node("n0"))
    assert shell.ledger.set_node(core.node("n0", ready=False))
