"""Where the operator handles one object, an exception sets that object aside: the others proceed and no loop ends."""

from __future__ import annotations

import pytest

from boathouse.cluster import informer, wire
from boathouse.scheduling import intake, pod_conditions
from tests.builders import manifests
from tests.builders.operators.schedulers import scheduling

POISON = "demo/poison"


def fail(key: str) -> None:
    if key == POISON:
        raise RuntimeError(key)


def preparing(patch):
    """Preparing the pod for the store raises."""
    whole = informer.Reflector._transformed

    def transformed(self, new):
        if not isinstance(new, wire.UnreadablePod):
            fail(new.metadata.key)
        return whole(self, new)

    patch.setattr(informer.Reflector, "_transformed", transformed)


def taking_in(patch):
    """The scheduler raises for a change of the pod."""
    whole = intake.Intake.on_pod

    def on_pod(self, change):
        fail(change.key)
        whole(self, change)

    patch.setattr(intake.Intake, "on_pod", on_pod)


def writing_a_condition(patch):
    """The body of the pod's condition cannot be made."""
    whole = pod_conditions.condition_of

    def condition(pod, why):
        fail(pod.metadata.key)
        return whole(pod, why)

    patch.setattr(pod_conditions, "condition_of", condition)


PLACES = {
    "transform": (preparing, "StoringFailed"),
    "subscriber": (taking_in, "HandlingFailed"),
    "condition": (writing_a_condition, "WritingFailed"),
}


@pytest.mark.parametrize(("place", "reason"), PLACES.values(), ids=PLACES)
async def test_an_exception_sets_one_pod_aside_and_the_others_proceed(api, eventually, monkeypatch, place, reason):
    place(monkeypatch)
    api.add(manifests.node("n1", cpu="4"))
    async with scheduling(api) as w:
        api.add(manifests.pod("poison", cpu="8"))
        api.add(manifests.pod("large", cpu="8"))
        api.add(manifests.pod("good", cpu="1"))
        await eventually(lambda: "demo/good" in w.placed() and w.condition("demo/large") and w.events("SetAside"))
        assert {event["regarding"]["name"] for event in w.events("SetAside")} == {"poison"}
        assert w.metric("boathouse_objects_set_aside_total", kind="Pod", reason=reason) == 1
        api.add(manifests.pod("later", cpu="1"))
        await eventually(lambda: "demo/later" in w.placed())
        assert not w.fatal


async def test_a_subscriber_that_raises_keeps_a_change_from_no_other(api, eventually):
    reported = []
    async with scheduling(api) as w:
        w.parts.pods.subscribe(lambda change: fail(change.key))
        w.parts.pods.subscribe(lambda change: reported.append(change.key))
        api.add(manifests.pod("poison"))
        api.add(manifests.pod("good"))
        await eventually(lambda: {POISON, "demo/good"} <= set(reported) and w.events("SetAside"))
        assert w.metric("boathouse_objects_set_aside_total", kind="Pod", reason="HandlingFailed") == 1


async def test_a_pod_that_cannot_take_a_change_of_storage_keeps_no_other_from_it(api, eventually, monkeypatch):
    whole, reached, armed = intake.Intake._admit, [], []

    def admit(self, row):
        if armed:
            fail(row.id)
            reached.append(row.facts.metadata.name)
        whole(self, row)

    monkeypatch.setattr(intake.Intake, "_admit", admit)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]
    async with scheduling(api) as w:
        for name in ("poison", "waits"):
            api.add(manifests.pod(name, volumes=volumes))
        await eventually(lambda: w.condition(POISON) and w.condition("demo/waits"))
        armed.append(True)
        w.scheduler.intake.on_storage()
        assert reached == ["waits"]
        await eventually(lambda: w.events("SetAside"))
