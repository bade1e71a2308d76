"""Who waits where, and what wakes whom."""

import dataclasses
import itertools
import math

import pytest

from boathouse_policies import model, profiles

from . import builders as make

CLASS = model.ClassId("job/map")


def active(world: make.World) -> list[str]:
    classes = world.room.sorted_classes()
    considered = [*itertools.compress(classes.queued, classes.open), *classes.orphans]
    return [queued.task_class.id for queued in sorted(considered, key=lambda queued: queued.rank)]


@pytest.fixture
def full() -> make.World:
    """A node of 4 CPUs that is full, and a job of which 2 tasks of 1 CPU wait, parked."""
    world = make.World(make.nodes(1))
    world.submit(count=6)
    world.cycle()
    assert active(world) == []
    return world


def test_room_that_came_free_wakes_who_fits_it(full):
    full.end("ns/job/map-0")
    assert active(full) == ["job/map"]
    assert make.where(full.cycle()) == [("job/map-4", "n0")]


def test_room_that_is_too_small_wakes_nobody():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("small", 4, size=make.amount(1000, 1))
    world.submit("large", 1, size=make.amount(2000, 1), submitted_s=1.0)
    world.cycle()
    world.end("ns/small/map-0")
    assert active(world) == []
    world.end("ns/small/map-1")
    assert active(world) == ["large/map"]


def test_a_node_that_came_or_changed_wakes_all_that_want_nodes(full):
    full.ledger.set_node(make.node("n1"))
    full.room.nodes_changed()
    assert len(make.placements(full.cycle())) == 2


def test_what_never_fits_is_woken_by_nodes_and_not_by_room():
    world = make.World(make.nodes(1))
    world.submit("usual", 1)
    world.submit("huge", 1, size=make.amount(5000, 1), submitted_s=1.0)
    world.cycle()
    world.end("ns/usual/map-0")
    assert active(world) == []
    world.room.nodes_changed()
    assert active(world) == ["huge/map"]


def test_a_limit_that_was_relaxed_wakes_who_it_held():
    name = model.QueueName("default")
    world = make.World(make.nodes(1), [model.Queue.of(name, limits={"pods": 1})])
    world.submit(count=2)
    world.cycle()
    assert active(world) == []
    world.room.set_queues([model.Queue.of(name)])
    assert len(make.placements(world.cycle())) == 1


def test_the_end_of_a_task_wakes_who_its_queues_limit_held():
    world = make.World(make.nodes(1), [model.Queue.of(model.QueueName("default"), limits={"pods": 1})])
    world.submit(count=2)
    world.cycle()
    world.end("ns/job/map-0")
    assert make.where(world.cycle()) == [("job/map-1", "n0")]


def test_what_is_parked_is_looked_at_again_after_a_minute(full):
    assert full.room.next_wake_s() == 60.0
    assert not full.room.tick(59.9)
    assert full.room.tick(60.0)


def test_an_empty_room_never_wakes():
    assert make.World().room.next_wake_s() == math.inf


def test_the_same_submission_again_leaves_the_parked_parked(full):
    full.submit(count=6)
    assert active(full) == []


def test_a_new_task_of_a_parked_class_wakes_it(full):
    full.submit(count=7)
    assert active(full) == ["job/map"]


def test_news_of_one_task_wake_its_class_only_if_they_are_news(full):
    task = full.room.classes_of(model.JobId("job"))[0].pool.order[4]
    assert full.room.update(task, placed=False)
    assert active(full) == []
    assert full.room.update(dataclasses.replace(task, pod_uid=model.PodUid("u")), placed=False)
    assert active(full) == ["job/map"]


def test_a_task_that_is_not_known_takes_a_submission(full):
    assert not full.room.update(model.Task(id=model.TaskId("ns/x"), task_class=CLASS), placed=False)


def test_a_submission_replaces_the_one_before():
    world = make.World(make.nodes(1))
    world.submit(count=6)
    world.submit(count=2)
    assert len(make.placements(world.cycle())) == 2


def test_tasks_that_run_do_not_wait(full):
    full.submit(count=6)
    assert len(full.room) == 2


def test_a_withdrawn_job_waits_no_more(full):
    full.room.withdraw(model.JobId("job"))
    assert len(full.room) == 0
    full.end("ns/job/map-0")
    assert active(full) == []


def test_a_failed_request_backs_off_longer_each_time():
    world = make.World(make.nodes(1))
    world.submit(count=1)
    delays = []
    for _ in range(6):
        world.now_s = max(world.now_s, world.room.next_wake_s() if math.isfinite(world.room.next_wake_s()) else 0.0)
        world.room.tick(world.now_s)
        (one,) = make.placements(world.cycle())
        world.ledger.forget(one.task.id)
        delays.append(world.room.back_off(one.task.id, CLASS, world.now_s))
    assert delays == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_task_that_fails_for_hours_backs_off_for_ten_seconds_each_time(full):
    (task,) = full.room.classes_of(model.JobId("job"))[0].pool.order[:1]
    assert {full.room.back_off(task.id, CLASS, now_s=10.0 * i) for i in range(2000)} == {1.0, 2.0, 4.0, 8.0, 10.0}


def test_a_task_that_backs_off_is_not_placed_before_its_time():
    world = make.World(make.nodes(1))
    world.submit(count=1)
    (one,) = make.placements(world.cycle())
    world.ledger.forget(one.task.id)
    world.room.back_off(one.task.id, CLASS, now_s=0.0)
    world.submit(count=1)  # level-triggered: said again meanwhile
    assert not world.room.tick(0.9)
    assert world.room.tick(1.0)
    assert len(make.placements(world.cycle())) == 1


def test_a_job_that_is_said_again_while_its_task_is_assumed_still_gets_it_back():
    world = make.World(make.nodes(1))
    world.submit(count=1)
    (one,) = make.placements(world.cycle())
    world.submit(count=1)
    world.ledger.forget(one.task.id)
    assert world.room.back_off(one.task.id, CLASS, now_s=0.0) == 1.0
    assert world.room.tick(1.0)


def test_success_makes_the_next_failure_the_first_again():
    world = make.World(make.nodes(1))
    world.submit(count=1)
    (one,) = make.placements(world.cycle())
    assert world.room.back_off(one.task.id, CLASS, 0.0) == 1.0
    world.room.succeeded(one.task.id)
    assert world.room.back_off(one.task.id, CLASS, 0.0) == 1.0


def test_a_task_of_a_vanished_node_waits_again_at_once(full):
    for task in full.ledger.remove_node(model.NodeName("n0")):
        full.room.put_back(task, CLASS)
    assert (len(full.room), active(full)) == (6, ["job/map"])


def test_a_task_that_comes_back_is_first_again():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit(count=6)
    world.cycle()
    world.end("ns/job/map-1")
    world.cycle()  # the fifth task; by now the search for the next begins behind it
    world.ledger.forget(model.TaskId("ns/job/map-0"))
    world.room.put_back(model.TaskId("ns/job/map-0"), CLASS)
    assert make.where(world.cycle()) == [("job/map-0", "n0")]


def test_tasks_of_a_class_that_was_not_submitted_are_refused():
    world = make.World()
    one = make.task_class(make.job())
    with pytest.raises(ValueError, match="was not submitted with job"):
        world.room.submit(make.job(), [], [make.task(one)])


def test_a_queue_needs_a_positive_weight():
    with pytest.raises(ValueError, match="must be above 0"):
        model.Queue(name=model.QueueName("q"), weight=0.0)
