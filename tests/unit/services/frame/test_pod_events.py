"""Events about the pods of an object, from one reconcile to the next."""

import dataclasses

import pytest

from boathouse.services.frame.pod_events import Ended, PodEvents
from boathouse.services.frame.pod_life import PodLife
from boathouse.suspension.stages import SuspensionRecord
from boathouse_policies import model
from tests.builders.observers import Recorder

FULL = model.Resources(cpu_milli=500, memory_bytes=1 << 29)
LENT = model.Resources(cpu_milli=1, memory_bytes=1 << 29)
RECORD = SuspensionRecord(
    cpu_request_milli=500,
    cpu_limit_milli=900,
    since_s=1.0,
    until_s=60.0,
    reason="WaitingForMaps",
    by="ikayak",
    order="7-1",
)


@dataclasses.dataclass(frozen=True)
class Pod:
    name: str = "r-0"
    uid: str = "uid-1"
    node: str | None = "n1"
    state: PodLife = PodLife.RUNNING
    resources: model.Resources = FULL
    suspension: SuspensionRecord | None = None
    is_suspended: bool = False
    failure: str = ""


SUSPENDED = Pod(resources=LENT, suspension=RECORD, is_suspended=True)


class Published(Recorder):
    """The events that are published about pods."""

    def __init__(self):
        super().__init__()
        self.pods = PodEvents(
            self.events.append,
            about=lambda pod: {"now_s": 7.0, "task": pod.name, "task_class": "c", "job": "j", "node": pod.node},
            distance=lambda _: model.Distance.ANYWHERE,
            ended=lambda pod: Ended(duration_s=3.0, counters={"n": 1.0}, reason=pod.failure),
        )

    def update(self, *versions):
        """Publish one version of a pod after the other; return the types of the events."""
        for version in versions:
            self.pods.update([version])
        return self.kinds


@pytest.fixture
def pod_events():
    return Published()


def changed(**parts):
    return dataclasses.replace(Pod(), **parts)


def test_a_pod_without_a_node_is_not_placed(pod_events):
    assert pod_events.update(changed(node=None)) == []


def test_each_change_is_published_once(pod_events):
    pod = changed(state=PodLife.STARTING)
    assert pod_events.pods.update([pod]) == [pod]
    assert pod_events.update(pod, Pod(), Pod()) == ["Placed", "Started"]
    assert pod_events.update(changed(state=PodLife.SUCCEEDED), changed(state=PodLife.SUCCEEDED))[2:] == ["Finished"]


def test_a_failure_has_the_reason_of_the_kind(pod_events):
    pod_events.update(changed(state=PodLife.FAILED, failure="OOMKilled"))
    assert [event.reason for event in pod_events.of(model.Failed)] == ["OOMKilled"]


def test_another_pod_of_the_same_name_takes_the_place_of_a_vanished_one(pod_events):
    assert pod_events.update(Pod(), changed(uid="uid-2")) == ["Placed", "Started", "Failed", "Placed", "Started"]
    assert pod_events.of(model.Failed)[0].reason == "PodLost"


def test_a_pod_with_another_size_is_resized(pod_events):
    pod_events.update(Pod(), changed(resources=LENT))
    assert [event.resources for event in pod_events.of(model.Resized)] == [LENT]


def test_a_suspension_is_no_resize_from_its_start_to_its_end(pod_events):
    shrinking = dataclasses.replace(SUSPENDED, resources=FULL)
    continuing = dataclasses.replace(SUSPENDED, is_suspended=False)
    restored = dataclasses.replace(continuing, resources=FULL)
    kinds = pod_events.update(Pod(), shrinking, SUSPENDED, continuing, restored)
    assert kinds == ["Placed", "Started", "Suspended", "Resumed"]
    assert (pod_events.of(model.Suspended)[0].resources, pod_events.of(model.Suspended)[0].until_s) == (LENT, 60.0)
    assert pod_events.of(model.Resumed)[0].resources == FULL


def test_after_a_restart_a_suspended_pod_is_placed_with_its_size_and_suspended(pod_events):
    assert pod_events.update(SUSPENDED) == ["Placed", "Started", "Suspended"]
    assert pod_events.of(model.Placed)[0].resources == FULL


def test_a_pod_that_ends_while_it_is_suspended_is_not_resumed(pod_events):
    assert pod_events.update(SUSPENDED, changed(state=PodLife.FAILED, failure="PodLost"))[3:] == ["Failed"]


def test_a_suspension_without_a_readable_record_has_no_end(pod_events):
    pod_events.update(Pod(), changed(is_suspended=True))
    assert pod_events.of(model.Suspended)[0].until_s is None


def test_a_size_that_shows_only_after_the_end_is_not_published(pod_events):
    assert pod_events.update(Pod(), changed(state=PodLife.SUCCEEDED, resources=LENT)) == [
        "Placed",
        "Started",
        "Finished",
    ]


def test_at_the_end_of_the_object_live_pods_have_failed_and_new_ones_are_published(pod_events):
    pod_events.update(Pod())
    pod_events.pods.forget([Pod(), changed(name="r-1", uid="uid-3", state=PodLife.SUCCEEDED)])
    assert pod_events.kinds[2:] == ["Placed", "Started", "Finished", "Failed"]
