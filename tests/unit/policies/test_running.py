"""Which task runs where: after any events the account equals a recount."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

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


def event(kind, number, now_s=0.0, size=SIZES[0], node=None):
    """An event of a task; which class a task is of, and its job, follow from its number."""
    one = CLASSES[number % len(CLASSES)]
    about = {"task": model.TaskId(f"t{number}"), "task_class": model.ClassId(one), "job": model.JobId(one[0])}
    node = model.NodeName(node or NODES[number % len(NODES)])
    return kind(now_s=now_s, node=node, **about, **MORE.get(kind, lambda _: {})(size))


class Told(framework.Follower):
    def __init__(self, running):
        self.here = set()
        running.follow(self)

    def placed(self, task):
        self.here.add(task)

    def ended(self, task, event):
        assert event.task == task.task
        self.here.remove(task)


def recount(events):
    """What runs, from all that ever happened: (node, class, resources, started, suspended) by task."""
    found = {}
    for one in events:
        if isinstance(one, model.Placed):
            found[one.task] = [one.node, one.task_class, one.resources, None, None]
        elif isinstance(one, model.Finished | model.Failed):
            found.pop(one.task, None)
        elif one.task in found:
            known = found[one.task]
            if isinstance(one, model.Resized | model.Resumed):
                known[2] = one.resources
            if isinstance(one, model.Started):
                known[3] = one.now_s
            if isinstance(one, model.Suspended | model.Resumed):
                known[4] = one.now_s if isinstance(one, model.Suspended) else None
    return found


def account(tasks):
    return {one.task: [one.node, one.task_class, one.resources, one.started_s, one.suspended_s] for one in tasks}


@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, 6), st.sampled_from(SIZES), st.sampled_from(NODES)),
        max_size=60,
    )
)
def test_after_any_events_the_account_equals_a_recount(drawn):
    running = framework.RunningTasks()
    told = Told(running)
    events = [event(kind, number, float(i), size, node) for i, (kind, number, size, node) in enumerate(drawn)]
    for one in events:
        running.observe(one)
    wanted = recount(events)
    assert account(running.tasks.values()) == wanted
    assert told.here == set(running.tasks.values())
    for node in NODES:
        assert account(running.on(node)) == {task: one for task, one in wanted.items() if one[0] == node}
    for task_class in CLASSES:
        assert account(running.of(task_class)) == {task: one for task, one in wanted.items() if one[1] == task_class}


def test_a_task_that_is_placed_again_has_ended_before():
    running = framework.RunningTasks()
    told = Told(running)
    for node in NODES:
        running.observe(event(model.Placed, 0, node=node))
    assert [one.node for one in told.here] == ["n1"]


def test_a_refused_decision_changes_nothing():
    running = framework.RunningTasks()
    running.observe(event(model.Placed, 0))
    before = dataclasses.asdict(running.tasks["t0"])
    task = model.Task(id=model.TaskId("t0"), task_class=model.ClassId(CLASSES[0]))
    resize = model.Resize(task=task, node=model.NodeName("n0"), resources=SIZES[1], reason="test")
    running.observe(model.Refused(now_s=1.0, decision=resize, reason="test"))
    assert dataclasses.asdict(running.tasks["t0"]) == before


def test_a_profile_has_one_account_and_it_is_told_first():
    for name in profiles.names():
        kinds = [type(one) for one in profiles.build(name).observers]
        assert framework.RunningTasks not in kinds[1:]
