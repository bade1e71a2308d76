"""Which task runs where: after any events the account equals a recount."""

import dataclasses

from hypothesis import given, settings, strategies as st

from boathouse_policies import framework, model, profiles
from tests.builders import core

NODES, CLASSES, SIZES = ("n0", "n1"), ("a/map", "a/reduce", "b/map"), (core.amount(1000, 1), core.amount(500, 2))
KINDS = (model.Placed, model.Started, model.Resized, model.Suspended, model.Resumed, model.Finished, model.Failed)
MORE = {
    model.Placed: lambda size: {"resources": size, "distance": model.Distance.ANYWHERE},
    model.Resized: lambda size: {"resources": size},
    model.Suspended: lambda size: {"resources": size, "until_s": None},
    model.Resumed: lambda size: {"resources": size},
    model.Finished: lambda _: {"duration_s": 1.0, "counters": {}},
    model.Failed: lambda _: {"reason": "test"},
}


def event_of(kind, number, now_s=0.0, size=SIZES[0], node=None):
    """An event of a task; which class a task is of, and its job, follow from its number."""
    task_class = CLASSES[number % len(CLASSES)]
    about = {
        "task": model.TaskId(f"t{number}"),
        "task_class": model.ClassId(task_class),
        "job": model.JobId(task_class[0]),
    }
    node = model.NodeName(node or NODES[number % len(NODES)])
    return kind(now_s=now_s, node=node, **about, **MORE.get(kind, lambda _: {})(size))


class Follower(framework.Follower):
    def __init__(self, running):
        self.here = set()
        running.follow(self)

    def placed(self, task):
        self.here.add(task)

    def ended(self, task, event):
        assert event.task == task.task
        self.here.remove(task)


def recount(states, event):
    """Change what runs by an event: [node, class, resources, started, suspended] by task."""
    if isinstance(event, model.Placed):
        states[event.task] = [event.node, event.task_class, event.resources, None, None]
    elif isinstance(event, model.Finished | model.Failed):
        states.pop(event.task, None)
    elif event.task in states:
        state = states[event.task]
        if isinstance(event, model.Resized | model.Resumed):
            state[2] = event.resources
        if isinstance(event, model.Started):
            state[3] = event.now_s
        if isinstance(event, model.Suspended | model.Resumed):
            state[4] = event.now_s if isinstance(event, model.Suspended) else None


def states_by_task(tasks):
    return {
        task.task: [task.node, task.task_class, task.resources, task.started_s, task.pause and task.pause.since_s]
        for task in tasks
    }


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.sampled_from(SIZES), st.sampled_from(NODES)),
        min_size=20,
        max_size=40,
    )
)
def test_after_any_events_the_account_equals_a_recount(drawn):
    running, recounted = framework.RunningTasks(), {}
    follower = Follower(running)
    for i, (kind, number, size, node) in enumerate(drawn):
        event = event_of(kind, number, float(i), size, node)
        running.observe(event)
        recount(recounted, event)
        assert states_by_task(running.tasks.values()) == recounted
        assert follower.here == set(running.tasks.values())
        for where in NODES:
            assert states_by_task(running.on(where)) == {
                t: state for t, state in recounted.items() if state[0] == where
            }
        for of in CLASSES:
            assert states_by_task(running.of(of)) == {t: state for t, state in recounted.items() if state[1] == of}


def test_a_task_that_is_placed_again_has_ended_before():
    running = framework.RunningTasks()
    follower = Follower(running)
    for node in NODES:
        running.observe(event_of(model.Placed, 0, node=node))
    assert [task.node for task in follower.here] == ["n1"]


def test_a_refused_decision_changes_nothing():
    running = framework.RunningTasks()
    running.observe(event_of(model.Placed, 0))
    before = dataclasses.asdict(running.tasks["t0"])
    task = model.Task(id=model.TaskId("t0"), task_class=model.ClassId(CLASSES[0]))
    resize = model.Resize(task=task, node=model.NodeName("n0"), resources=SIZES[1], reason="test")
    running.observe(model.Refused(now_s=1.0, decision=resize, reason="test"))
    assert dataclasses.asdict(running.tasks["t0"]) == before


def test_a_profile_has_at_most_one_account_and_it_is_its_first_observer():
    for name in profiles.names():
        kinds = [type(observer) for observer in profiles.build(name).observers]
        assert framework.RunningTasks not in kinds[1:]
