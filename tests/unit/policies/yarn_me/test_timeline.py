"""The timeline against an exact look-ahead that knows no short cut."""

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_policies import model
from tests.builders import core
from tests.builders.core_yarn_me import Future
from tests.unit.policies.yarn_me import reference


def test_a_job_ends_when_the_last_of_its_waves_does():
    future = Future()
    future.submit("job", (5, 4, 10.0))  # two at once on 10 GiB
    assert future.reaches("job", [10.0, 30.0, 30.1]) == [True, True, False]


def test_a_question_about_an_earlier_time_is_answered_after_one_about_a_later():
    future = Future()
    future.submit("job", (5, 4, 10.0))
    assert future.reaches("job", [30.1, 30.0]) == [False, True]


def test_what_runs_longer_than_estimated_may_end_at_any_moment():
    future = Future()
    future.submit("job", (1, 8, 10.0))
    future.start("job", 0)
    assert future.reaches("job", [15.0, 15.1], now_s=15.0) == [True, False]


def test_a_failed_task_is_placed_again():
    future = Future()
    future.submit("job", (1, 8, 10.0))
    future.start("job", 0)
    task = core.task(future.classes["job"][0])
    future.ledger.gone(task.id)
    future.report(core.task_event(model.Failed, task, now_s=5.0))
    assert future.reaches("job", [15.0, 15.1], now_s=5.0) == [True, False]


def test_a_task_ends_by_its_run_time_after_it_started_and_not_after_it_was_placed():
    future = Future()
    future.submit("job", (1, 8, 10.0))
    future.start("job", 0)
    future.report(core.task_event(model.Started, core.task(future.classes["job"][0]), now_s=4.0))
    assert future.reaches("job", [14.0, 14.1], now_s=5.0) == [True, False]


def test_cpu_delays_as_memory_does():
    future = Future()
    future.submit("job", (9, 1, 10.0))  # 8 cores
    assert future.reaches("job", [20.0]) == [True]


def test_a_kept_node_delays_the_others():
    future = Future()
    future.submit("running", (1, 8, 10.0))
    future.submit("small", (1, 1, 10.0), submitted_s=1.0)
    future.submit("large", (1, 10, 10.0), submitted_s=2.0)
    future.start("running", 0)
    assert future.reaches("small", [10.1]) == [False]
    future.reserve(0, "large")
    assert future.reaches("small", [30.0]) == [True]


def test_the_future_is_played_in_the_profiles_order():
    future = Future()
    future.submit("first", (2, 8, 10.0))
    future.submit("second", (1, 8, 10.0), submitted_s=1.0)
    assert future.reaches("second", [20.0, 20.1]) == [True, False]  # it holds nothing, so it comes between the two
    assert future.reaches("second", [30.0], job_key={"first": 1.0, "second": 2.0}.__getitem__) == [True]


def test_a_job_holds_nothing_of_what_has_ended():
    future = Future()
    future.submit("ended", (2, 8, 10.0))
    future.submit("holds", (1, 1, 100.0), (1, 8, 10.0), submitted_s=1.0)
    future.start("ended", 0)
    future.finish("ended", 0, 0, now_s=10.0)
    future.start("holds", 0)
    assert future.reaches("ended", [20.0, 20.1], now_s=10.0) == [True, False]


def test_what_will_have_ended_is_not_held_in_the_future_either():
    future = Future(2)
    future.submit("a", (3, 8, 10.0))
    future.submit("b", (1, 1, 100.0), (2, 8, 10.0), submitted_s=1.0)
    future.submit("c", (1, 8, 12.0), submitted_s=2.0)
    for name in ("d", "e"):
        future.submit(name, (1, 8, 10.0), submitted_s=3.0)
    future.start("a", 0, now_s=-5.0)  # until 5
    future.start("b", 1)
    future.start("c", 1, now_s=-5.0)  # until 7
    future.reserve(0, "d")
    future.reserve(1, "e")
    # d until 15 and e until 17, then a on both, for it holds nothing any more
    assert future.reaches("a", [27.0, 27.1]) == [True, False]


def test_the_last_end_of_a_job_is_that_of_what_still_runs():
    future = Future()
    future.submit("job", (3, 3, 10.0))
    for now_s in (0.0, 2.0, 5.0):
        future.start("job", 0, now_s=now_s)
    assert future.outlook.last_end_s(model.JobId("job")) == 15.0
    future.finish("job", 0, 2, now_s=6.0)
    assert future.outlook.last_end_s(model.JobId("job")) == 12.0


def test_nothing_is_known_of_a_job_that_was_never_submitted():
    assert Future().reaches("ghost", [1.0]) == [False]


@st.composite
def futures(draw):
    future = Future(draw(st.integers(1, 3)))
    names = [f"job-{i}" for i in range(draw(st.integers(1, 4)))]
    for i, name in enumerate(names):
        classes = st.tuples(st.integers(1, 6), st.integers(1, 9), st.integers(1, 60).map(float))
        future.submit(
            name, *draw(st.lists(classes, min_size=1, max_size=2)), submitted_s=float(draw(st.integers(0, i)))
        )
    for node in range(len(future.nodes)):
        for name in draw(st.lists(st.sampled_from(names), max_size=3)):
            task_class = future.classes[name][0]
            free = future.ledger.free(future.nodes[node].name)
            if future.outlook.left[task_class.id] and free[model.MEMORY] >= task_class.resources.memory_bytes:
                future.start(name, node, now_s=float(draw(st.integers(0, 9))))
        if draw(st.booleans()):
            future.reserve(node, draw(st.sampled_from(names)))
    return future


@hypothesis.settings(max_examples=70, deadline=None)
@hypothesis.given(future=futures(), asked=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), min_size=1))
def test_every_answer_is_that_of_the_exact_look_ahead(future, asked):
    # What is kept goes by class here and by job there: the same as long as the class kept for is the one that is next.
    hypothesis.assume(all(future.outlook.left[class_id] for class_id in future.reserved.values()))
    exact = reference.LookAhead(future.outlook, future.ledger.snapshot(10.0), future.reserved)
    timeline = future.timeline(10.0)
    for job, time_s in asked:
        name = model.JobId(f"job-{job}")
        assert timeline.reaches(name, float(time_s)) == exact.reaches(name, float(time_s))


def test_the_reference_itself_plays_waves():
    jobs = {"a": reference.Job("a", 0.0, [[3, 4, 1, 10.0]])}
    assert reference.finish_times(0.0, [[8, 8]], [], jobs, {}) == pytest.approx({"a": 20.0})
