"""The ledger's states: assume, confirm, forget, gone."""

import pytest

from boathouse_policies import framework, model

from . import builders as make


@pytest.fixture
def world() -> make.World:
    """Two nodes of 4 CPUs and a job of two tasks, placed on n0 and n1 but not confirmed."""
    world = make.World(make.nodes(2))
    world.submit(count=2)
    world.cycle()
    return world


FIRST = model.TaskId("ns/job/map-0")


def free_cpu(world: make.World, node: str = "n0") -> int:
    free = world.ledger.free(model.NodeName(node))
    assert free is not None
    return int(free[model.CPU])


def confirmed(on: str | None = "n0", **fields) -> framework.Account:
    return make.pod("job/map-0", on, **fields)


def test_what_is_assumed_is_deducted_at_once(world):
    assert world.ledger.state(FIRST) is framework.State.ASSUMED
    assert free_cpu(world) == 3000


def test_the_watch_confirms_and_counts_nothing_twice(world):
    world.ledger.observe(confirmed())
    assert world.ledger.state(FIRST) is framework.State.CONFIRMED
    assert free_cpu(world) == 3000


def test_an_unbound_event_does_not_undo_an_assumption(world):
    assert world.ledger.observe(confirmed(on=None)) is None
    assert world.ledger.state(FIRST) is framework.State.ASSUMED


def test_forgetting_gives_the_room_back_once(world):
    assert world.ledger.forget(FIRST) == framework.Freed(node=model.NodeName("n0"), queue=model.QueueName("default"))
    assert world.ledger.forget(FIRST) is None
    assert free_cpu(world) == 4000


def test_forgetting_what_the_watch_has_shown_changes_nothing(world):
    world.ledger.observe(confirmed())
    assert world.ledger.forget(FIRST) is None
    assert free_cpu(world) == 3000


def test_a_task_cannot_be_assumed_twice(world):
    placement = model.Create(
        task=make.task(make.task_class(make.job())),
        task_class=make.task_class(make.job()),
        job=make.job(),
        node=model.NodeName("n1"),
        resources=make.amount(1000, 1),
    )
    with pytest.raises(ValueError, match="assumed already"):
        world.ledger.assume(placement)


def test_the_truth_wins_where_the_watch_shows_another_node(world):
    world.ledger.observe(confirmed(on="n1"))
    assert (free_cpu(world, "n0"), free_cpu(world, "n1")) == (4000, 2000)


def test_the_end_of_an_earlier_pod_of_the_same_name_changes_nothing(world):
    world.ledger.observe(confirmed(uid=model.PodUid("new")))
    assert world.ledger.gone(FIRST, model.PodUid("old")) is None
    assert world.ledger.gone(FIRST, model.PodUid("new")) is not None
    assert FIRST not in world.ledger


def test_a_new_pod_of_the_same_name_that_waits_replaces_the_old_one(world):
    world.ledger.observe(confirmed(uid=model.PodUid("old")))
    assert world.ledger.observe(confirmed(on=None, uid=model.PodUid("new"))) is not None
    assert free_cpu(world) == 4000


def test_a_node_that_flaps_comes_back_with_what_runs_on_it(world):
    world.ledger.observe(confirmed())
    assert world.ledger.remove_node(model.NodeName("n0")) == ()
    assert world.ledger.free(model.NodeName("n0")) is None
    world.ledger.set_node(make.node("n0"))
    assert free_cpu(world) == 3000


def test_assumptions_on_a_vanished_node_are_reverted_and_named(world):
    assert world.ledger.remove_node(model.NodeName("n0")) == (FIRST,)
    assert FIRST not in world.ledger


def test_a_pod_may_be_seen_before_its_node():
    world = make.World()
    world.ledger.observe(confirmed(on="late"))
    world.ledger.set_node(make.node("late"))
    assert free_cpu(world, "late") == 3000


def test_a_resize_counts_the_larger_amount_until_the_watch_shows_it(world):
    world.ledger.observe(confirmed(size=make.amount(1000, 1)))
    world.ledger.assume_resize(FIRST, make.amount(2000, 1))
    assert free_cpu(world) == 2000
    world.ledger.observe(confirmed(size=make.amount(1000, 1)))  # from before the resize
    assert free_cpu(world) == 2000
    world.ledger.observe(confirmed(size=make.amount(2000, 1)))
    world.ledger.observe(confirmed(size=make.amount(500, 1)))
    assert free_cpu(world) == 3500


def test_what_a_smaller_size_gives_back_counts_only_when_the_watch_shows_it(world):
    world.ledger.assume_resize(FIRST, make.amount(1, 1))
    assert free_cpu(world) == 3000
    assert world.ledger.observe(confirmed(size=make.amount(1, 1))) is not None
    assert free_cpu(world) == 3999


def test_a_resize_that_failed_counts_what_was_shown_last(world):
    world.ledger.assume_resize(FIRST, make.amount(2000, 1))
    assert world.ledger.forget_resize(FIRST) is not None
    assert world.ledger.forget_resize(FIRST) is None
    assert free_cpu(world) == 3000


def test_usage_is_charged_to_job_and_queue(world):
    view = world.view()
    assert view.job_usage(model.JobId("job"))[model.CPU] == 2000
    assert view.queue_usage(model.QueueName("default"))[model.PODS] == 2
    assert sum(view.job_usage(model.JobId("nobody"))) == 0


def test_what_is_held_of_a_node_that_does_not_exist_is_charged_to_nobody_until_it_is_there(world):
    queue, ghost = model.QueueName("default"), make.nodes(3)[2]

    def pods() -> int:
        return int(world.ledger.snapshot(0.0).queue_usage(queue)[model.PODS])

    before = pods()
    world.ledger.observe(make.pod("ghost", ghost.name, queue=queue))
    assert pods() == before
    world.ledger.set_node(ghost)
    assert pods() == before + 1
    assert world.ledger.queues_on(ghost.name) == {queue}
    world.ledger.remove_node(ghost.name)
    assert pods() == before
    world.ledger.gone(model.TaskId("ns/ghost"))
    world.ledger.set_node(ghost)
    assert pods() == before


def test_tasks_of_a_class_are_counted_where_they_start_together(world):
    world.submit("gang", count=2, gang_min=2)
    world.cycle()
    assert world.view().by_class == {"gang/map": 2}
    world.end("ns/gang/map-0")
    assert world.view().by_class == {"gang/map": 1}


def test_a_snapshot_does_not_move(world):
    view = world.view()
    before = view.requested.copy()
    world.end(FIRST)
    world.ledger.set_node(make.node("n9"))
    assert (view.requested == before).all()
    assert view.job_usage(model.JobId("job"))[model.PODS] == 2
    assert len(view.nodes) == 2


def test_a_snapshot_does_not_move_even_where_nobody_looked_before_the_change(world):
    view = world.view()
    world.end(FIRST)
    world.ledger.set_node(make.node("m9"))  # comes first by name
    world.view()
    assert view.requested[model.CPU].tolist() == [1000, 1000]
    assert view.job_usage(model.JobId("job"))[model.CPU] == 2000
    assert view.queue_usage(model.QueueName("default"))[model.PODS] == 2


def test_a_resource_that_comes_later_is_counted_beside_what_was_held_before(world):
    gpus = model.Resources.of(cpu_milli=1000, extended={"nvidia.com/gpu": 2})
    world.ledger.observe(make.pod("gpu", on="n0", size=gpus))
    world.end(FIRST)
    assert world.view().requested[:, 0].tolist() == [1000, 0, 0, 1, 2]
    world.end("ns/gpu")
    assert world.view().requested[:, 0].sum() == 0


def test_the_comparison_with_a_list_sets_assumptions_aside(world):
    assert not world.ledger.compare([], make.nodes(2))


def test_the_comparison_names_each_kind_of_drift(world):
    world.ledger.observe(confirmed())
    world.ledger.observe(make.pod("ghost"))
    listed = [confirmed(size=make.amount(1, 1)), make.pod("missing"), make.pod("pending", on=None)]
    drift = world.ledger.compare(listed, [make.node("n0", unschedulable=True), make.node("n2")])
    assert drift == framework.Drift(
        missing_pods=(model.TaskId("ns/missing"),),
        ghost_pods=(model.TaskId("ns/ghost"),),
        different_pods=(FIRST,),
        missing_nodes=(model.NodeName("n2"),),
        ghost_nodes=(model.NodeName("n1"),),
        different_nodes=(model.NodeName("n0"),),
    )


def test_a_heartbeat_that_changes_nothing_is_no_change(world):
    assert not world.ledger.set_node(make.node("n0"))
    assert world.ledger.set_node(make.node("n0", ready=False))
