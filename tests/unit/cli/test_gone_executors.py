"""Executors whose pods are gone are drawn from the events about them."""

from types import SimpleNamespace

import pytest

from boathouse_cli import gone_executors, kinds, model, sparkapps
from boathouse_cli.errors import CommandError
from boathouse_cli.timeline import Activity
from tests.unit.cli import build

NAME = "pi-0a1b2c3d-a1-exec-1"
FORGED = (f"\x1b[31m{NAME}", f"pi-0a1b2c3d-a{'9' * 5000}-exec-1")
"""Anybody who may write events in a namespace chooses the names in them."""


def event(reason, second, message="", pod=NAME, field="firstTimestamp"):
    about = {"kind": "Pod", "name": pod}
    return {"reason": reason, field: build.at(second), "message": message, "involvedObject": about}


def placed(second, pod=NAME):
    return event("Scheduled", second, f"Successfully assigned demo/{pod} to node-1", pod, "eventTime")


def app(**status):
    raw = build.app(completionTime=build.at(30), **status)
    raw["metadata"]["uid"] = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
    return sparkapps.read(raw)


def test_an_executor_has_the_times_of_its_events():
    (found,) = gone_executors.of(app(), [placed(10), event("Started", 12), event("Killing", 25)], ())
    assert (found.task, found.node, found.attempt) == ("executor-1", "node-1", 1)
    assert [each - build.START_S for each in (found.placed_s, found.started_s, found.finished_s)] == [10, 12, 25]


def test_an_executor_that_nobody_killed_ends_with_its_driver():
    (found,) = gone_executors.of(app(), [placed(10), event("Started", 12)], ())
    assert found.finished_s == build.START_S + 30


@pytest.mark.parametrize("pod", ["pi-0a1b2c3d-a1-driver", "pi-ffffffff-a1-exec-1", "other", *FORGED])
def test_other_pods_are_left_out(pod):
    assert gone_executors.of(app(), [placed(10, pod)], ()) == []


def test_pods_that_exist_and_events_without_a_node_are_left_out():
    assert gone_executors.of(app(), [placed(10)], {NAME}) == []
    assert gone_executors.of(app(), [event("Started", 12)], ()) == []
    forged = event("Scheduled", 10, f"Successfully assigned demo/{NAME} to \x1b[31mnode-1")
    assert gone_executors.of(app(), [forged], ()) == []


def test_the_timeline_of_an_application_that_ended_has_its_executors():
    driver = build.spark_ended(build.driver(created_s=2), start_s=5, end_s=28)
    found = [model.task_pod(driver), *gone_executors.of(app(), [placed(10), event("Started", 12)], ())]
    line = kinds.SPARKAPP.timeline(app(), found, now_s=0)
    assert line.wall_seconds()[Activity.EXECUTORS] == 16


def test_without_the_right_to_read_events_the_pods_are_drawn():
    def refused(**_fields):
        raise CommandError("events is forbidden")

    gateway = SimpleNamespace(pods=lambda _selector: [], events=refused)
    assert kinds.drawn_pods(gateway, kinds.SPARKAPP, app()) == []
