"""Who waits where, and what wakes whom."""

import dataclasses
import itertools
import math

import pytest

from boathouse_policies import model
from tests.builders import core

CLASS = model.ClassId("job/map")


def active(shell: core.Shell) -> list[str]:
    classes = shell.queue.sorted_classes()
    considered = [*itertools.compress(classes.queued, classes.open), *classes.orphans]
    return [queued.task_class.id for queued in sorted(considered, key=lambda queued: queued.rank)]


@pytest.fixture
def full() -> core.Shell:
    """A node of 4 CPUs that is full, and a job of which 2 tasks of 1 CPU wait, parked."""
    shell = core.Shell(core.nodes(1))
    shell.submit(count=6)
    shell.cycle()
    assert active(shell) == []
    return shell


def test_room_that_came_free_wakes_who_fits_it(full):
    full.end("ns/job/map-0")
    assert active(full) == ["job/map"]
    assert core.where(full.cycle()) == [("job/map-4", "n0")]


def test_room_that_is_too_small_wakes_nobody():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.submit("small", 4, size=core.amount(1000, 1))
    shell.submit("large", 1, size=core.amount(2000, 1), submitted_s=1.0)
    shell.cycle()
    shell.end("ns/small/map-0")
    assert active(shell) == []
    shell.end("ns/small/map-1")
    assert active(shell) == ["large/map"]


def test_a_node_that_came_or_changed_wakes_all_that_want_nodes(full):
    full.ledger.set_node(core.node("n1"))
    full.queue.nodes_changed()
    assert len(core.placements(full.cycle())) == 2


def test_what_never_fits_is_woken_by_nodes_and_not_by_room():
    shell = core.Shell(core.nodes(1))
    shell.submit("usual", 1)
    shell.submit("huge", 1, size=core.amount(5000, 1), submitted_s=1.0)
    shell.cycle()
    shell.end("ns/usual/map-0")
    assert active(shell) == []
    shell.queue.nodes_changed()
    assert active(shell) == ["huge/map"]


def test_a_limit_that_was_relaxed_wakes_who_it_held():
    shell = core.Shell(core.nodes(1), [core.queue(pods=1)])
    shell.submit(count=2)
    shell.cycle()
    assert active(shell) == []
    shell.queue.set_queues([core.queue()])
    assert len(core.placements(shell.cycle())) == 1


def test_the_end_of_a_task_wakes_who_its_queues_limit_held():
    shell = core.Shell(core.nodes(1), [core.queue(pods=1)])
    shell.submit(count=2)
    shell.cycle()
    shell.end("ns/job/map-0")
    assert core.where(shell.cycle()) == [("job/map-1", "n0")]


def test_what_is_parked_is_looked_at_again_after_a_minute(full):
    assert full.queue.next_wake_s() == 60.0
    assert not full.queue.tick(59.9)
    assert full.queue.tick(60.0)


def test_an_empty_room_never_wakes():
    assert core.Shell().queue.next_wake_s() == math.inf


def test_the_same_submission_again_leaves_the_parked_parked(full):
    full.submit(count=6)
    assert active(full) == []


def test_a_new_task_of_a_parked_class_wakes_it(full):
    full.submit(count=7)
    assert active(full) == ["job/map"]


def test_news_of_one_task_wake_its_class_only_if_they_are_news(full):
    task = full.queue.classes_of(model.JobId("job"))[0].pool.order[4]
    assert full.queue.update(task, placed=False)
    assert active(full) == []
    assert full.queue.update(dataclasses.replace(task, pod_uid=model.PodUid("u")), placed=False)
    assert active(full) == ["job/map"]


def test_a_task_that_is_not_known_takes_a_submission(full):
    assert not full.queue.update(model.Task(id=model.TaskId("ns/x"), task_class=CLASS), placed=False)


def test_a_submission_replaces_the_one_before():
    shell = core.Shell(core.nodes(1))
    shell.submit(count=6)
    shell.submit(count=2)
    assert len(core.placements(shell.cycle())) == 2


def test_tasks_that_run_do_not_wait(full):
    full.submit(count=6)
    assert len(full.queue) == 2


def test_a_withdrawn_job_waits_no_more(full):
    full.queue.withdraw(model.JobId("job"))
    assert len(full.queue) == 0
    full.end("ns/job/map-0")
    assert active(full) == []


def test_a_withdrawn_job_wakes_those_that_waited_behind_it():
    shell = core.Shell(core.nodes(1), profile="capacity")
    shell.submit("usual", 1, size=core.amount(3000, 1))
    shell.cycle()
    shell.submit("large", 1, size=core.amount(2000, 1), submitted_s=1.0)
    shell.submit("small", 1, size=core.amount(1000, 1), submitted_s=2.0)
    shell.cycle()
    assert active(shell) == []
    shell.queue.withdraw(model.JobId("large"))
    assert active(shell) == ["small/map"]


def test_a_failed_request_backs_off_longer_each_time():
    shell = core.Shell(core.nodes(1))
    shell.submit(count=1)
    delays = []
    for _ in range(6):
        due_s = shell.queue.next_wake_s()
        (task,) = core.task_ids(shell.cycle(due_s if math.isfinite(due_s) else 0.0))
        shell.ledger.forget(task)
        delays.append(shell.queue.back_off(task, CLASS, shell.now_s))
    assert delays == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_task_that_fails_for_hours_backs_off_for_ten_seconds_each_time(full):
    (task,) = full.queue.classes_of(model.JobId("job"))[0].pool.order[:1]
    assert {full.queue.back_off(task.id, CLASS, now_s=10.0 * i) for i in range(2000)} == {1.0, 2.0, 4.0, 8.0, 10.0}


def test_a_task_that_backs_off_is_not_placed_before_its_time():
    shell = core.Shell(core.nodes(1))
    shell.submit(count=1)
    (task,) = core.task_ids(shell.cycle())
    shell.ledger.forget(task)
    shell.queue.back_off(task, CLASS, now_s=0.0)
    shell.submit(count=1)  # level-triggered: said again meanwhile
    assert not shell.queue.tick(0.9)
    assert shell.queue.tick(1.0)
    assert len(core.placements(shell.cycle())) == 1


def test_a_job_that_is_said_again_while_its_task_is_assumed_still_gets_it_back():
    shell = core.Shell(core.nodes(1))
    shell.submit(count=1)
    (task,) = core.task_ids(shell.cycle())
    shell.submit(count=1)
    shell.ledger.forget(task)
    assert shell.queue.back_off(task, CLASS, now_s=0.0) == 1.0
    assert shell.queue.tick(1.0)


def test_success_makes_the_next_failure_the_first_again():
    shell = core.Shell(core.nodes(1))
    shell.submit(count=1)
    (task,) = core.task_ids(shell.cycle())
    assert shell.queue.back_off(task, CLASS, 0.0) == 1.0
    shell.queue.succeeded(task)
    assert shell.queue.back_off(task, CLASS, 0.0) == 1.0


def test_a_task_of_a_vanished_node_waits_again_at_once(full):
    for task in full.ledger.remove_node(model.NodeName("n0")):
        full.queue.put_back(task, CLASS)
    assert (len(full.queue), active(full)) == (6, ["job/map"])


def test_a_task_that_is_put_back_is_first_again():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.submit(count=6)
    shell.cycle()
    shell.end("ns/job/map-1")
    shell.cycle()  # the fifth task; by now the search for the next begins behind it
    shell.ledger.forget(model.TaskId("ns/job/map-0"))
    shell.queue.put_back(model.TaskId("ns/job/map-0"), CLASS)
    assert core.where(shell.cycle()) == [("job/map-0", "n0")]


def test_tasks_of_a_class_that_was_not_submitted_are_refused():
    shell = core.Shell()
    task_class = core.task_class(core.job())
    with pytest.raises(ValueError, match="was not submitted with job"):
        shell.queue.submit(core.job(), [], [core.task(task_class)])


def test_a_queue_needs_a_positive_weight():
    with pytest.raises(ValueError, match="must be above 0"):
        model.Queue(name=model.QueueName("q"), weight=0.0)
