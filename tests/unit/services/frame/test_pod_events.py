"""Events about the pods of an object, from one reconcile to the next."""

import dataclasses

import pytest

from boathouse.scheduling.pods.suspension import SuspensionRecord
from boathouse.services.frame.pod_events import Ended, PodEvents
from boathouse.services.frame.pod_life import PodLife
from boathouse_policies import model

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


class World:
    def __init__(self):
        self.published = []
        self.events = PodEvents(
            self.published.append,
            about=lambda pod: {"now_s": 7.0, "task": pod.name, "task_class": "c", "job": "j", "node": pod.node},
            distance=lambda _: model.Distance.ANYWHERE,
            ended=lambda pod: Ended(duration_s=3.0, counters={"n": 1.0}, reason=pod.failure),
        )

    def see(self, *versions):
        """Show one version of a pod after the other; return the types of the events."""
        for version in versions:
            self.events.update([version])
        return self.names

    @property
    def names(self):
        return [type(event).__name__ for event in self.published]

    def of(self, kind):
        return [event for event in self.published if isinstance(event, kind)]


@pytest.fixture
def world():
    return World()


def changed(**parts):
    return dataclasses.replace(Pod(), **parts)


def test_a_pod_without_a_node_is_not_placed(world):
    assert world.see(changed(node=None)) == []


def test_each_change_is_published_once(world):
    pod = changed(state=PodLife.STARTING)
    assert world.events.update([pod]) == [pod]
    assert world.see(pod, Pod(), Pod()) == ["Placed", "Started"]
    assert world.see(changed(state=PodLife.SUCCEEDED), changed(state=PodLife.SUCCEEDED))[2:] == ["Finished"]


def test_a_failure_has_the_reason_of_the_kind(world):
    world.see(changed(state=PodLife.FAILED, failure="OOMKilled"))
    assert [event.reason for event in world.of(model.Failed)] == ["OOMKilled"]


def test_another_pod_of_the_same_name_takes_the_place_of_a_vanished_one(world):
    assert world.see(Pod(), changed(uid="uid-2")) == ["Placed", "Started", "Failed", "Placed", "Started"]
    assert world.of(model.Failed)[0].reason == "PodLost"


def test_a_pod_with_another_size_is_resized(world):
    world.see(Pod(), changed(resources=LENT))
    assert [event.resources for event in world.of(model.Resized)] == [LENT]


def test_a_suspension_is_no_resize_from_its_start_to_its_end(world):
    shrinking = dataclasses.replace(SUSPENDED, resources=FULL)
    continuing = dataclasses.replace(SUSPENDED, is_suspended=False)
    restored = dataclasses.replace(continuing, resources=FULL)
    names = world.see(Pod(), shrinking, SUSPENDED, continuing, restored)
    assert names == ["Placed", "Started", "Suspended", "Resumed"]
    assert (world.of(model.Suspended)[0].resources, world.of(model.Suspended)[0].until_s) == (LENT, 60.0)
    assert world.of(model.Resumed)[0].resources == FULL


def test_after_a_restart_a_suspended_pod_is_placed_with_its_size_and_suspended(world):
    assert world.see(SUSPENDED) == ["Placed", "Started", "Suspended"]
    assert world.of(model.Placed)[0].resources == FULL


def test_a_pod_that_ends_while_it_is_suspended_is_not_resumed(world):
    assert world.see(SUSPENDED, changed(state=PodLife.FAILED, failure="PodLost"))[3:] == ["Failed"]


def test_a_suspension_without_a_readable_record_has_no_end(world):
    world.see(Pod(), changed(is_suspended=True))
    assert world.of(model.Suspended)[0].until_s is None


def test_a_size_that_shows_only_after_the_end_is_not_published(world):
    assert world.see(Pod(), changed(state=PodLife.SUCCEEDED, resources=LENT)) == ["Placed", "Started", "Finished"]


def test_at_the_end_of_the_object_live_pods_have_failed_and_unseen_ones_are_published(world):
    world.see(Pod())
    world.events.forget([Pod(), changed(name="r-1", uid="uid-3", state=PodLife.SUCCEEDED)])
    assert world.names[2:] == ["Placed", "Started", "Finished", "Failed"]
