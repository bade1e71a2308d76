"""The timeline against an exact look-ahead that knows no short cut."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_policies import framework, model
from boathouse_policies.yarn_me import penalty
from boathouse_policies.yarn_me.outlook import Outlook
from boathouse_policies.yarn_me.timeline import Timeline
from tests.unit.policies import builders as make
from tests.unit.policies.yarn_me import reference

GIB = make.GIB
NODE = make.amount(8000, 10)
NODES = [one.name for one in make.nodes(1)]


def estimates(gib, seconds, output_gib=0):
    run_time = penalty.Mapper(
        ideal_s=seconds, ideal_bytes=gib * GIB, undersized_s=2 * seconds, output_bytes=output_gib * GIB
    )
    return penalty.Elastic(run_time, ideal_bytes=gib * GIB, step_bytes=GIB)


class Future:
    """A moment to look ahead from, told by events alone."""

    def __init__(self, nodes=1):
        self.nodes = make.nodes(nodes, NODE, max_pods=1000)
        self.ledger = framework.Ledger(model.Axis())
        for node in self.nodes:
            self.ledger.set_node(node)
        self.running = framework.RunningTasks()
        self.outlook = Outlook(self.running)
        self.reserved = {}
        self.classes = {}

    def observe(self, event):
        self.running.observe(event)
        self.outlook.observe(event)

    def job(self, name, *classes, submitted_s=0.0):
        """Classes are (tasks, gib, seconds)."""
        job = make.job(name, submitted_s=submitted_s)
        made = [
            make.task_class(job, make.amount(1000, gib), f"c{i}", estimates=estimates(gib, seconds))
            for i, (_, gib, seconds) in enumerate(classes)
        ]
        tasks = {one.id: count for one, (count, _, _) in zip(made, classes, strict=True)}
        self.classes[name] = made
        self.observe(model.Submitted(now_s=submitted_s, job=job, classes=tuple(made), tasks=tasks))

    def runs(self, name, node, now_s=0.0):
        """One more task of the job's first class was placed."""
        one = self.classes[name][0]
        task = make.task(one, len(self.ledger))
        where = self.nodes[node].name
        owner = self.outlook.jobs[one.job].job
        self.ledger.assume(model.Create(task=task, task_class=one, job=owner, node=where, resources=one.resources))
        self.observe(
            model.Placed(
                now_s=now_s,
                task=task.id,
                task_class=one.id,
                job=one.job,
                node=where,
                resources=one.resources,
                distance=model.Distance.ANYWHERE,
            )
        )

    def ends(self, name, node, index, now_s):
        """A task of the job's first class finished."""
        one = self.classes[name][0]
        task = make.task(one, index)
        self.ledger.gone(task.id)
        self.observe(
            model.Finished(
                now_s=now_s,
                task=task.id,
                task_class=one.id,
                job=one.job,
                node=self.nodes[node].name,
                duration_s=now_s,
                counters={},
            )
        )

    def keep(self, node, name):
        self.reserved[self.nodes[node].name] = self.classes[name][0].id

    def timeline(self, now_s=0.0, **order):
        return Timeline(self.outlook, self.ledger.snapshot(now_s), self.reserved, **order)

    def exact(self, now_s=0.0):
        """The same moment for the reference."""
        return reference.LookAhead(self.outlook, self.ledger.snapshot(now_s), self.reserved)


def test_a_job_ends_when_the_last_of_its_waves_does():
    future = Future()
    future.job("job", (5, 4, 10.0))  # two at once on 10 GiB
    timeline = future.timeline()
    assert [timeline.reaches(model.JobId("job"), time_s) for time_s in (10.0, 30.0, 30.1)] == [True, True, False]


def test_a_question_about_an_earlier_time_is_answered_after_one_about_a_later():
    future = Future()
    future.job("job", (5, 4, 10.0))
    timeline = future.timeline()
    assert [timeline.reaches(model.JobId("job"), time_s) for time_s in (30.1, 30.0)] == [False, True]


def test_what_runs_longer_than_estimated_may_end_at_any_moment():
    future = Future()
    future.job("job", (1, 8, 10.0))
    future.runs("job", 0)
    assert future.timeline(15.0).reaches(model.JobId("job"), 15.0)
    assert not future.timeline(15.0).reaches(model.JobId("job"), 15.1)


def test_a_failed_task_is_placed_again():
    future = Future()
    future.job("job", (1, 8, 10.0))
    future.runs("job", 0)
    task = make.task(future.classes["job"][0], 0)
    failed = model.Failed(
        now_s=5.0, task=task.id, task_class=task.task_class, job=model.JobId("job"), node=NODES[0], reason="lost"
    )
    future.ledger.gone(task.id)
    future.observe(failed)
    assert future.timeline(5.0).reaches(model.JobId("job"), 15.0)
    assert not future.timeline(5.0).reaches(model.JobId("job"), 15.1)


def test_a_task_ends_by_its_run_time_after_it_started_and_not_after_it_was_placed():
    future = Future()
    future.job("job", (1, 8, 10.0))
    future.runs("job", 0)
    one = future.classes["job"][0]
    future.observe(model.Started(now_s=4.0, task=make.task(one, 0).id, task_class=one.id, job=one.job, node=NODES[0]))
    assert future.timeline(5.0).reaches(model.JobId("job"), 14.0)
    assert not future.timeline(5.0).reaches(model.JobId("job"), 14.1)


def test_cpu_delays_as_memory_does():
    future = Future()
    future.job("job", (9, 1, 10.0))  # 8 cores
    assert future.timeline().reaches(model.JobId("job"), 20.0)


def test_a_kept_node_delays_the_others():
    future = Future()
    future.job("running", (1, 8, 10.0))
    future.job("small", (1, 1, 10.0), submitted_s=1.0)
    future.job("large", (1, 10, 10.0), submitted_s=2.0)
    future.runs("running", 0)
    assert not future.timeline().reaches(model.JobId("small"), 10.1)
    future.keep(0, "large")
    assert future.timeline().reaches(model.JobId("small"), 30.0)


def test_the_future_is_played_in_the_profiles_order():
    future = Future()
    future.job("first", (2, 8, 10.0))
    future.job("second", (1, 8, 10.0), submitted_s=1.0)
    first, second = model.JobId("first"), model.JobId("second")
    assert future.timeline().reaches(second, 20.0)  # it holds nothing, so it comes between the two
    assert not future.timeline().reaches(second, 20.1)
    assert future.timeline(job_key={first: 1.0, second: 2.0}.__getitem__).reaches(second, 30.0)


def test_a_job_holds_nothing_of_what_has_ended():
    future = Future()
    future.job("ended", (2, 8, 10.0))
    future.job("holds", (1, 1, 100.0), (1, 8, 10.0), submitted_s=1.0)
    future.runs("ended", 0)
    future.ends("ended", 0, 0, now_s=10.0)
    future.runs("holds", 0)
    timeline = future.timeline(10.0)
    assert timeline.reaches(model.JobId("ended"), 20.0)
    assert not timeline.reaches(model.JobId("ended"), 20.1)


def test_what_will_have_ended_is_not_held_in_the_future_either():
    future = Future(2)
    future.job("a", (3, 8, 10.0))
    future.job("b", (1, 1, 100.0), (2, 8, 10.0), submitted_s=1.0)
    future.job("c", (1, 8, 12.0), submitted_s=2.0)
    for name in ("d", "e"):
        future.job(name, (1, 8, 10.0), submitted_s=3.0)
    future.runs("a", 0, now_s=-5.0)  # until 5
    future.runs("b", 1)
    future.runs("c", 1, now_s=-5.0)  # until 7
    future.keep(0, "d")
    future.keep(1, "e")
    timeline = future.timeline()  # d until 15 and e until 17, then a on both, for it holds nothing any more
    assert timeline.reaches(model.JobId("a"), 27.0)
    assert not timeline.reaches(model.JobId("a"), 27.1)


def test_the_last_end_of_a_job_is_that_of_what_still_runs():
    future = Future()
    future.job("job", (3, 3, 10.0))
    for now_s in (0.0, 2.0, 5.0):
        future.runs("job", 0, now_s=now_s)
    assert future.outlook.last_end_s(model.JobId("job")) == 15.0
    future.ends("job", 0, 2, now_s=6.0)
    assert future.outlook.last_end_s(model.JobId("job")) == 12.0


def test_nothing_is_known_of_a_job_that_was_never_submitted():
    assert not Future().timeline().reaches(model.JobId("ghost"), 1.0)


@st.composite
def futures(draw):
    future = Future(draw(st.integers(1, 3)))
    names = [f"job-{i}" for i in range(draw(st.integers(1, 4)))]
    for i, name in enumerate(names):
        classes = st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 60).map(float))
        future.job(name, *draw(st.lists(classes, min_size=1, max_size=2)), submitted_s=float(draw(st.integers(0, i))))
    for node in range(len(future.nodes)):
        for name in draw(st.lists(st.sampled_from(names), max_size=3)):
            one = future.classes[name][0]
            free = future.ledger.free(future.nodes[node].name)
            if future.outlook.left[one.id] and free[model.MEMORY] >= one.resources.memory_bytes:
                future.runs(name, node, now_s=float(draw(st.integers(0, 9))))
        if draw(st.booleans()):
            future.keep(node, draw(st.sampled_from(names)))
    return future


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(future=futures(), asked=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), min_size=1))
def test_every_answer_is_that_of_the_exact_look_ahead(future, asked):
    # What is kept goes by class here and by job there: the same as long as the class kept for is the one that is next.
    hypothesis.assume(all(future.outlook.left[one] for one in future.reserved.values()))
    exact, timeline = future.exact(10.0), future.timeline(10.0)
    for job, time_s in asked:
        name = model.JobId(f"job-{job}")
        assert timeline.reaches(name, float(time_s)) == exact.reaches(name, float(time_s))


def test_the_reference_itself_plays_waves():
    jobs = {"a": reference.Job("a", 0.0, [[3, 4, 1, 10.0]])}
    assert reference.finish_times(0.0, [[8, 8]], [], jobs, {}) == pytest.approx({"a": 20.0})
