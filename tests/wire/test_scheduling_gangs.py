"""A driver and its executors on the fake API server: the test creates the executors, as the driver would."""

from __future__ import annotations

import pytest

from boathouse.scheduling import gangs
from boathouse_policies import model, profiles
from tests.builders import manifests
from tests.builders.operators.applications import App
from tests.builders.operators.schedulers import Factory, scheduling

ROOM = ["n1", "n2"]


class SparkFactory(Factory):
    """Makes the drivers of a test."""

    def __init__(self, job: str) -> None:
        super().__init__(job)
        self.owner["kind"] = "SparkApp"


def submit(w, app: App, minimum: int | None = None) -> None:
    tasks = app.tasks(app.minimum if minimum is None else minimum)
    w.scheduler.submit(app.job, app.classes, tasks, SparkFactory(app.name))


def nodes(api) -> None:
    for name in ROOM:
        api.add(manifests.node(name, cpu="4"))


def executor(api, app: App, number: int, **more) -> str:
    """Create an executor as the driver does; return its key."""
    driver = api.get("pods", str(app.driver))["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": driver["name"], "uid": driver["uid"], "controller": True}
    name = f"{app.name}-exec-{number}"
    api.add(manifests.pod(name, owner=owner, **{"cpu": "1", "memory": "1Mi"} | more))
    return f"demo/{name}"


def reserved(w, app: App) -> list[str]:
    entry = w.scheduler.state.jobs.entry(app.job.id)
    rows = gangs.members(entry.gang, w.scheduler.state.pods).expected if entry and entry.gang else ()
    return sorted(row.reserved.node for row in rows if row.reserved is not None)


async def test_a_driver_is_created_and_its_executors_are_bound_where_room_is_reserved(api, eventually):
    nodes(api)
    async with scheduling(api) as w:
        app = App(minimum=6)
        submit(w, app)
        await eventually(lambda: app.driver in w.placed())
        w.submit("filler", 8)
        keys = [executor(api, app, number) for number in range(6)]
        await eventually(lambda: set(keys) <= w.placed().keys())
        assert reserved(w, app) == []
    assert len([name for name in w.placed() if "filler" in name]) == 1
    assert w.over_committed() == []


async def test_the_next_leader_keeps_the_reservations_of_the_last_one(api, eventually):
    nodes(api)
    app = App(minimum=5)
    async with scheduling(api) as w:
        submit(w, app)
        await eventually(lambda: app.driver in w.placed())
        first = executor(api, app, 1)
        await eventually(lambda: first in w.placed())
        before = reserved(w, app)
    assert len(before) == 4
    for number in range(8):
        api.add(manifests.pod(f"other-{number}", cpu="1"))
    async with scheduling(api) as w:
        submit(w, app)
        await eventually(lambda: len(reserved(w, app)) == 4)
        await eventually(lambda: len(w.placed()) == 4)
        keys = [executor(api, app, number) for number in range(2, 6)]
        await eventually(lambda: set(keys) <= w.placed().keys())
    assert w.over_committed() == []


async def test_executors_that_are_listed_before_their_driver_is_known_are_its_own(api, eventually):
    nodes(api)
    app = App("z", minimum=2)  # its executors would be listed after others, and before it
    async with scheduling(api) as w:
        submit(w, app)
        await eventually(lambda: app.driver in w.placed())
    key = executor(api, app, 1)
    async with scheduling(api) as w:
        submit(w, app)
        await eventually(lambda: key in w.placed())
        account = w.scheduler.state.ledger.account(model.TaskId(key))
        assert account is not None
        assert account.job == app.job.id


async def test_executors_of_a_driver_that_ended_stay_without_a_node(api, eventually):
    nodes(api)
    async with scheduling(api) as w:
        app = App(minimum=0)
        submit(w, app)
        await eventually(lambda: app.driver in w.placed())
        large = executor(api, app, 1, cpu="4")
        small = executor(api, app, 2, cpu="4")
        await eventually(lambda: len({large, small} & w.placed().keys()) == 1)
        api.end_pod(str(app.driver))
        (left,) = {large, small} - w.placed().keys()
        (ended,) = {large, small} - {left}
        api.end_pod(ended)
        await eventually(lambda: ended not in w.scheduler.state.ledger)
        await eventually(lambda: w.scheduler.state.pods.get(model.TaskId(left)).task is None)
        await eventually(w.at_rest)
        assert left in w.waiting()


async def test_a_quota_keeps_a_driver_from_starting_until_it_is_raised(api, eventually):
    nodes(api)
    api.add(_quota("3"))
    async with scheduling(api) as w:
        app = App(minimum=3)
        submit(w, app)
        await eventually(lambda: w.scheduler.diagnosis(app.job.id) is not None)
        assert w.scheduler.diagnosis(app.job.id).reason == "ExceedsQuota"
        assert w.placed() == {}
        api.change("resourcequotas", "demo/small", {"spec": {"hard": {"pods": "4"}}})
        await eventually(lambda: app.driver in w.placed())


def _quota(pods: str) -> dict:
    metadata = {"name": "small", "namespace": "demo"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": pods}}}


@pytest.mark.parametrize("profile", ["boathouse", "fair"])
async def test_an_application_that_cannot_fit_beside_a_pod_that_stays_keeps_no_node_from_others(
    api, eventually, profile
):
    for number in range(10):
        api.add(manifests.node(f"n{number}", cpu="4"))
    api.add(manifests.pod("stays", cpu="1500m", node="n0", scheduler="default-scheduler"))
    async with scheduling(api, profile=profiles.build(profile)) as w:
        app = App(minimum=9, cpu=4, driver_cpu=4)
        submit(w, app)
        await eventually(lambda: w.scheduler.diagnosis(app.job.id) is not None)
        others = [f"other-{number}" for number in range(36)]
        for name in others:
            api.add(manifests.pod(name, namespace="other", cpu="1"))
        await eventually(lambda: {f"other/{name}" for name in others} <= w.placed().keys())
    assert w.over_committed() == []
