"""The book of jobs keeps what the scheduling queue may forget."""

import datetime as dt

from boathouse.cluster import wire
from boathouse.resources.names import LABEL_JOB_UID, SCHEDULER_NAME
from boathouse.scheduling import jobs
from boathouse.scheduling.pods import facts, ownership, rows, table
from boathouse.scheduling.volumes import book as volume_book, rules
from boathouse_policies import framework, model
from tests.builders.manifests import container, owner_view, pod_facts, pod_view

OURS = {
    "labels": {LABEL_JOB_UID: "j"},
    "owner": owner_view(),
}
QUEUE = model.QueueName("default")


class Book:
    """The book, with a queue and a pod table to look at."""

    def __init__(self) -> None:
        self.now_s = 0.0
        axis = model.Axis()
        self.room = framework.SchedulingQueue(axis, [model.Queue.of(QUEUE)])
        self.pods = table.PodTable(
            framework.Ledger(axis),
            volume_book.VolumeBook(rules.Storage()),
            lambda: self.now_s,
            scheduler_name=SCHEDULER_NAME,
            queue_of=ownership.default_queue,
        )
        self.jobs = jobs.Jobs(self.room, pods=self.pods, clock=lambda: self.now_s, queue_of=ownership.default_queue)

    def task(self, number: int) -> rows.PodRow:
        return self.pods.get(model.TaskId(f"demo/t{number}"))

    def shows(self, pod: facts.PodFacts) -> rows.PodRow:
        """Let the watch show a pod."""
        self.pods.observe(pod)
        row = self.pods.get(pod.id)
        self.jobs.mark_changed(row)
        return row

    def decide(self, number: int) -> rows.Operation:
        """Place a task."""
        row, entry = self.task(number), self.jobs.entry(model.JobId("j"))
        size = entry.classes[0].resources
        self.pods.set_node(model.Node(name=model.NodeName("n1"), allocatable=size))
        operation = self.pods.decide(
            row,
            model.Create(
                task=row.task, task_class=entry.classes[0], job=entry.job, node=model.NodeName("n1"), resources=size
            ),
        )
        self.jobs.mark_changed(row)
        assert isinstance(operation, rows.Operation)
        return operation

    def foreign(self, name: str, **parts) -> None:
        pod = pod_facts(name, **parts)
        assert self.jobs.add_foreign(self.shows(pod), pod) is None

    def ends(self, row: rows.PodRow) -> None:
        (change,) = self.pods.lose(row)
        self.jobs.mark_ended(change.job, was_pending=True)

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
    book.ends(book.task(0))
    book.submit(2)
    assert names(book.waiting()) == ["demo/t1"]


def test_a_placed_task_waits_again_when_its_placement_failed_even_if_its_job_was_submitted_in_between():
    book = Book()
    book.submit(1)
    operation = book.decide(0)
    book.submit(1)
    assert book.waiting() == []
    book.pods.refuse(operation)
    book.jobs.mark_changed(book.task(0))
    assert names(book.waiting()) == ["demo/t0"]


def test_a_task_with_a_pod_that_was_made_ahead_is_to_be_bound():
    book = Book()
    book.submit(1)
    book.shows(pod_facts("t0", meta=OURS))
    assert [task.pod_uid for task in book.waiting()] == ["uid-t0"]


def test_an_event_of_one_task_does_not_resubmit_its_job():
    book = Book()
    book.submit(3)
    known = book.room.classes_of(model.JobId("j"))
    book.shows(pod_facts("t1", meta=OURS))
    assert [task.pod_uid for task in book.waiting()] == [None, "uid-t1", None]
    assert book.room.classes_of(model.JobId("j"))[0] is known[0]


def test_news_of_a_task_take_it_out_when_it_is_placed_and_back_when_it_is_not():
    book = Book()
    book.submit(3)
    operation = book.decide(1)
    assert names(book.waiting()) == ["demo/t0", "demo/t2"]
    book.pods.refuse(operation)
    book.jobs.mark_changed(book.task(1))
    assert names(book.waiting()) == ["demo/t0", "demo/t1", "demo/t2"]


def test_pods_of_one_owner_with_equal_demands_are_one_class_of_one_job():
    book, owner = (
        Book(),
        {"owner": wire.OwnerReference(uid="rs", name="web", kind="ReplicaSet", controller=True)},
    )
    for name, cpu in (("a", "1"), ("b", "1"), ("c", "2")):
        book.foreign(name, containers=(container(cpu=cpu),), meta=owner)
    assert names(book.waiting()) == ["demo/a", "demo/b", "demo/c"]
    (entry,) = book.jobs.entries()
    assert (entry.job.name, len(entry.classes)) == ("demo/web", 2)


def test_a_foreign_job_is_as_old_as_its_first_pod_and_is_dropped_with_its_last():
    book, created = Book(), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    book.foreign("a", meta={"creation_timestamp": created})
    assert [entry.job.submitted_s for entry in book.jobs.entries()] == [created.timestamp()]
    book.ends(book.pods.get(model.TaskId("demo/a")))
    assert book.waiting() == []
    assert list(book.jobs.entries()) == []


def test_pods_of_different_priority_are_different_jobs():
    book = Book()
    owner = {"owner": wire.OwnerReference(uid="rs", controller=True)}
    for name, priority in (("a", 0), ("b", 1000)):
        book.foreign(name, meta=owner, priority=priority)
    assert sorted(entry.job.priority for entry in book.jobs.entries()) == [0, 1000]


def test_a_withdrawn_job_leaves_nothing():
    book = Book()
    book.submit(3)
    book.jobs.withdraw(model.JobId("j"))
    assert (len(book.room), book.task(0)) == (0, None)


def test_a_task_waits_from_when_it_was_first_submitted():
    book = Book()
    book.submit(1)
    book.now_s = 5
    book.submit(1)
    book.now_s = 7
    assert book.task(0).arrived_s == 0


def test_a_pod_names_its_queue_by_a_label():
    assert ownership.default_queue(pod_view()) == "default"
    assert ownership.default_queue(pod_view(meta={"labels": {"boathouse.dev/queue": "night"}})) == "night"


def test_submitting_an_ended_task_returns_it():
    book = Book()
    book.submit(2)
    book.ends(book.task(0))
    assert book.submit(2) == ["demo/t0"]
