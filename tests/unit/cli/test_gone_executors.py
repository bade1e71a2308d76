"""Executors whose pods are gone are drawn from the events about them."""

from types import SimpleNamespace

import pytest

from boathouse_cli import kinds, model, sparkapps
from boathouse_cli.errors import CommandError
from boathouse_cli.timeline import Activity
from tests.builders import cli

NAME = "pi-0a1b2c3d-a1-exec-1"
FORGED = (f"\x1b[31m{NAME}", f"pi-0a1b2c3d-a{'9' * 5000}-exec-1")
"""Anybody who may write events in a namespace chooses the names in them."""


def pod_event(reason, second, message="", pod=NAME, field="firstTimestamp"):
    about = {"kind": "Pod", "name": pod}
    return {"reason": reason, field: cli.time(second), "message": message, "involvedObject": about}


def scheduled_event(second, pod=NAME):
    return pod_event("Scheduled", second, f"Successfully assigned demo/{pod} to node-1", pod, "eventTime")


def ended_app(**status):
    raw = cli.sparkapp(completionTime=cli.time(30), **status)
    raw["metadata"]["uid"] = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
    return sparkapps.read(raw)


def test_an_executor_has_the_times_of_its_events():
    (found,) = sparkapps.gone_executors(
        ended_app(), [scheduled_event(10), pod_event("Started", 12), pod_event("Killing", 25)], ()
    )
    assert (found.task, found.node, found.attempt) == ("executor-1", "node-1", 1)
    assert [time_s - cli.START_S for time_s in (found.placed_s, found.started_s, found.finished_s)] == [10, 12, 25]


def test_an_executor_that_nobody_killed_ends_with_its_driver():
    (found,) = sparkapps.gone_executors(ended_app(), [scheduled_event(10), pod_event("Started", 12)], ())
    assert found.finished_s == cli.START_S + 30


@pytest.mark.parametrize("pod", ["pi-0a1b2c3d-a1-driver", "pi-ffffffff-a1-exec-1", "other", *FORGED])
def test_other_pods_are_left_out(pod):
    assert sparkapps.gone_executors(ended_app(), [scheduled_event(10, pod)], ()) == []


def test_pods_that_exist_and_events_without_a_node_are_left_out():
    assert sparkapps.gone_executors(ended_app(), [scheduled_event(10)], {NAME}) == []
    assert sparkapps.gone_executors(ended_app(), [pod_event("Started", 12)], ()) == []
    forged = pod_event("Scheduled", 10, f"Successfully assigned demo/{NAME} to \x1b[31mnode-1")
    assert sparkapps.gone_executors(ended_app(), [forged], ()) == []


def test_the_timeline_of_an_application_that_ended_has_its_executors():
    driver = cli.terminated_pod(cli.driver_pod(created_s=2), start_s=5, end_s=28)
    found = [
        model.task_pod(driver),
        *sparkapps.gone_executors(ended_app(), [scheduled_event(10), pod_event("Started", 12)], ()),
    ]
    line = kinds.SPARKAPP.timeline(ended_app(), found, now_s=0)
    assert cli.wall_seconds(line)[Activity.EXECUTORS] == 16


def test_without_the_right_to_read_events_the_pods_are_drawn():
    def refused(**_fields):
        raise CommandError("events is forbidden")

    gateway = SimpleNamespace(pods=lambda _selector: [], events=refused)
    assert kinds.drawn_pods(gateway, kinds.SPARKAPP, ended_app()) == []
