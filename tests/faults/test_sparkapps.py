"""The operator dies by SIGKILL before and after each write for a SparkApp: one driver, which ends well."""

from __future__ import annotations

import pytest

from boathouse_e2e import sparkmodel
from tests.faults import applications

pytestmark = pytest.mark.apiserver

PASSAGES = {
    "sparkapp.status": (1, 2),
    "sparkapp.config-map": (1,),
    "sparkapp.service": (1,),
    "sparkapp.submit": (1,),
    "scheduler.create": (1,),
}
SHORT = {"after-scheduler.create:1"}
FAILPOINTS = [
    f"{moment}-{write}:{passage}"
    for write, passages in PASSAGES.items()
    for moment in ("before", "after")
    for passage in passages
]
CASES = [pytest.param(failpoint, marks=() if failpoint in SHORT else pytest.mark.long) for failpoint in FAILPOINTS]
MOMENTS = pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.long), "after"])


@pytest.fixture
async def app(laboratory):
    async with applications.trying(laboratory) as one:
        yield one


@pytest.mark.parametrize("failpoint", CASES)
async def test_one_driver_is_submitted_whenever_the_operator_dies(app, failpoint, record_property):
    await app.create(sparkmodel.manifest("pi"))
    with app.operator() as operator:
        kills = await app.deaths(operator, failpoint, most=3, unless=app.ended)
        operator.start()
        await app.judge()
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


async def test_a_driver_that_fails_is_followed_by_another(app):
    app.model.program.fails = frozenset({1})
    policy = {"type": "OnFailure", "onFailureRetryInterval": 1}
    await app.create(sparkmodel.manifest("retried", restartPolicy=policy))
    with app.operator() as operator:
        operator.start()
        await app.judge(attempts=2)


@MOMENTS
async def test_a_suspended_application_has_no_pods_and_ends_when_it_is_resumed(app, moment, record_property):
    app.model.program.holds = True
    await app.create(sparkmodel.manifest("suspended"))
    with app.operator() as operator:
        operator.start()
        await app.until(app.is_in("Running"), "the driver runs")
        operator.kill()
        await app.patch({"suspend": True})
        most = 3 if moment == "before" else 1  # then the driver is deleted
        kills = await app.deaths(operator, f"{moment}-sparkapp.delete-pod", most=most)
        operator.start()
        await app.until(app.is_in("Suspended"), "the application is suspended")
        await app.until(app.nothing_left, "it has no pods")
        app.model.program.holds = False
        await app.patch({"suspend": False})
        await app.judge(attempts=2)
    record_property("kills", kills)
    assert kills == most


@pytest.mark.long
@MOMENTS
async def test_an_application_expires_with_all_that_was_made_for_it(app, moment, record_property):
    await app.create(sparkmodel.manifest("expiring"))
    with app.operator() as operator:
        operator.start()
        await app.until(app.ended, "the application has ended")
        operator.kill()
        await app.patch({"ttlSecondsAfterFinished": 0})
        kills = await app.deaths(operator, f"{moment}-sparkapp.expire", most=1)
        operator.start()
        await app.until(app.gone, "the application is deleted")
        await app.until(app.nothing_left, "its pods are gone")
    record_property("kills", kills)
    assert kills == 1


async def test_a_driver_whose_node_is_removed_is_followed_by_another(app):
    app.model.program.holds = True
    policy = {"type": "OnFailure", "onFailureRetryInterval": 1}
    await app.create(sparkmodel.manifest("moved", restartPolicy=policy))
    with app.operator() as operator:
        operator.start()
        await app.until(app.is_in("Running"), "the driver runs")
        node = (await app.status())["driver"]["node"]
        kept = app.lab.cluster.get("node", node)
        app.lab.cluster.run("delete", "node", node)
        await app.until(app.is_lost, "the driver is lost")
        app.model.program.holds = False  # before, the model's kubelet could still end the driver well
        await app.until(app.ended, "the application has ended")
        status = await app.status()
        app.lab.cluster.apply(without_identity(kept))
    assert (status["phase"], status["attempt"], status["pastAttempts"][0]["reason"]) == ("Succeeded", 2, "DriverLost")


def without_identity(node):
    metadata = {key: node["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": node["status"]}
