"""The book of jobs keeps what the scheduling queue may forget."""

import datetime as dt

from boathouse.cluster import wire
from boathouse.scheduling import jobs
from boathouse.scheduling.pods import ownership
from boathouse_policies import framework, model
from tests.unit.scheduling.builders import container, pod

QUEUE = model.QueueName("default")


class Book:
    """The book, with a room and a ledger to look at."""

    def __init__(self) -> None:
        axis = model.Axis()
        self.room = framework.SchedulingQueue(axis, [model.Queue.of(QUEUE)])
        self.placed: set[model.TaskId] = set()
        self.pods: dict[model.TaskId, wire.PodView] = {}
        self.now_s = 0.0
        self.jobs = jobs.Jobs(
            self.room, placed=self.placed, pods=self.pods, clock=lambda: self.now_s, queue_of=ownership.default_queue
        )

    def submit(self, count: int) -> list[model.TaskId]:
        job = model.Job(id=model.JobId("j"), queue=QUEUE, submitted_s=0)
        one = model.TaskClass(id=model.ClassId("j/map"), job=job.id, resources=model.Resources(cpu_milli=1))
        tasks = [model.Task(id=model.TaskId(f"demo/t{i}"), task_class=one.id, index=i) for i in range(count)]
        over = self.jobs.submit(job, [one], tasks, factory=object())
        self.jobs.sync()
        return over

    def waiting(self) -> list[model.Task]:
        self.jobs.sync()
        return [
            task
            for entry in self.jobs.entries()
            for one in self.room.classes_of(entry.job.id)
            for task in one.pool.pending()
        ]


def names(tasks: list[model.Task]) -> list[str]:
    return [task.id for task in tasks]


def test_a_task_that_is_over_never_waits_again_however_often_it_is_submitted():
    book = Book()
    book.submit(2)
    book.jobs.end(model.TaskId("demo/t0"), waited=False)
    book.submit(2)
    assert names(book.waiting()) == ["demo/t1"]


def test_a_placed_task_waits_again_when_its_placement_failed_even_if_its_job_was_submitted_in_between():
    book = Book()
    book.placed.add(model.TaskId("demo/t0"))
    book.submit(1)
    assert book.waiting() == []
    book.placed.clear()
    book.jobs.mark_changed(model.TaskId("demo/t0"))
    assert names(book.waiting()) == ["demo/t0"]


def test_a_task_with_a_pod_that_was_made_ahead_is_to_be_bound():
    book = Book()
    book.submit(1)
    book.pods[model.TaskId("demo/t0")] = pod("t0")
    book.jobs.mark_changed(model.TaskId("demo/t0"))
    assert [task.pod_uid for task in book.waiting()] == ["uid-t0"]


def test_news_of_one_task_do_not_say_its_job_anew():
    book = Book()
    book.submit(3)
    known = book.room.classes_of(model.JobId("j"))
    book.pods[model.TaskId("demo/t1")] = pod("t1")
    book.jobs.mark_changed(model.TaskId("demo/t1"))
    assert [task.pod_uid for task in book.waiting()] == [None, "uid-t1", None]
    assert book.room.classes_of(model.JobId("j"))[0] is known[0]


def test_news_of_a_task_take_it_out_when_it_is_placed_and_back_when_it_is_not():
    book, task = Book(), model.TaskId("demo/t1")
    book.submit(3)
    book.placed.add(task)
    book.jobs.mark_changed(task)
    assert names(book.waiting()) == ["demo/t0", "demo/t2"]
    book.placed.clear()
    book.jobs.mark_changed(task)
    assert names(book.waiting()) == ["demo/t0", "demo/t1", "demo/t2"]


def test_pods_of_one_owner_with_equal_demands_are_one_class_of_one_job():
    book, owner = (
        Book(),
        {"owner_references": (wire.OwnerReference(uid="rs", name="web", kind="ReplicaSet", controller=True),)},
    )
    for name, cpu in (("a", "1"), ("b", "1"), ("c", "2")):
        book.jobs.add_foreign(pod(name, containers=(container(cpu=cpu),), meta=owner))
    assert names(book.waiting()) == ["demo/a", "demo/b", "demo/c"]
    (entry,) = book.jobs.entries()
    assert (entry.job.name, len(entry.classes)) == ("demo/web", 2)


def test_a_foreign_job_is_as_old_as_its_first_pod_and_goes_with_its_last():
    book, created = Book(), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    book.jobs.add_foreign(pod("a", meta={"creation_timestamp": created}))
    assert [entry.job.submitted_s for entry in book.jobs.entries()] == [created.timestamp()]
    book.jobs.end(model.TaskId("demo/a"), waited=True)
    assert book.waiting() == []
    assert list(book.jobs.entries()) == []


def test_pods_of_different_priority_are_different_jobs():
    book = Book()
    owner = {"owner_references": (wire.OwnerReference(uid="rs", controller=True),)}
    for name, priority in (("a", 0), ("b", 1000)):
        book.jobs.add_foreign(pod(name, meta=owner, priority=priority))
    assert sorted(entry.job.priority for entry in book.jobs.entries()) == [0, 1000]
    assert book.jobs.lowest_priority() == 0


def test_a_withdrawn_job_leaves_nothing():
    book = Book()
    book.submit(3)
    book.jobs.withdraw(model.JobId("j"))
    assert (len(book.room), book.jobs.entry_of(model.TaskId("demo/t0"))) == (0, None)


def test_a_task_waits_from_when_it_was_first_submitted():
    book = Book()
    book.submit(1)
    book.now_s = 5
    book.submit(1)
    book.now_s = 7
    assert book.jobs.waited_s(model.TaskId("demo/t0")) == 7


def test_a_pod_names_its_queue_by_a_label():
    assert ownership.default_queue(pod()) == "default"
    assert ownership.default_queue(pod(meta={"labels": {"boathouse.dev/queue": "night"}})) == "night"


def test_whoever_submits_a_task_that_is_over_is_told_so():
    book = Book()
    book.submit(2)
    book.jobs.end(model.TaskId("demo/t0"), waited=False)
    assert book.submit(2) == ["demo/t0"]
