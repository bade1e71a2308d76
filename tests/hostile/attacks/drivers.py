"""A Spark driver of the attacker's: the program in it has a token, and does with it what it can."""

import contextlib
import json
import uuid

import pytest

from boathouse.cluster import catalogue, errors
from boathouse_e2e import hostile
from boathouse_e2e.hostile import pod
from tests.hostile import rest
from tests.hostile.attacks.pressure import continues
from tests.hostile.form import Attack

EXECUTORS = 20
MOST_SENT_BYTES = 16 * 2**20
"""What sockets hold of an answer that nobody reads on; the operator reads 256 KiB of it."""
MOST_STATUS_BYTES = 8 * 2**10
NOT_OWN = "its own pod as their only owner"
FORBIDDEN = (
    ({"metadata": {"ownerReferences": []}}, NOT_OWN),
    ({"metadata": {"labels": {"boathouse.dev/queue": "victims"}}}, "written by Boathouse only"),
    ({"metadata": {"labels": {"boathouse.dev/job-uid": str(uuid.uuid4())}}}, "written by Boathouse only"),
    ({"metadata": {"finalizers": ["example.org/held"]}}, "no finalizers"),
    ({"nodeName": "kwok-0"}, "spec.nodeName"),
    ({"schedulerName": "default-scheduler"}, "for the scheduler boathouse only"),
    ({"serviceAccountName": hostile.DRIVERS}, "do not run as boathouse-spark"),
    ({"serviceAccountName": hostile.ACCOUNT}, "may not run as the service account"),
    ({"automountServiceAccountToken": True}, "without the token"),
    ({"priorityClassName": "system-node-critical"}, "system-"),
    ({"hostNetwork": True}, "hostNetwork"),
    ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "volumes of the types"),
)


async def creates_what_it_may_not(siege):
    driver = await siege.begin_driver("greedy")
    for number, (fields, refusal) in enumerate(FORBIDDEN):
        with pytest.raises(errors.ApiError, match=refusal):
            await driver.create(driver.executor(number, **fields))
    for namespace in (hostile.VICTIM, "boathouse-system"):
        with pytest.raises(errors.Forbidden, match="cannot create resource"):
            await driver.api.create(catalogue.PODS.untyped(), driver.executor(0), namespace)


async def has_created_nothing(siege):
    (driver,) = siege.drivers
    assert [pod_view.metadata.name for pod_view in await siege.pods()] == [driver.pod]


async def takes_what_others_have(siege):
    """Another driver of the same namespace, its executors, and a pod of somebody else there."""
    thief, victim = [await siege.begin_driver(name) for name in ("thief", "honest")]
    await victim.create(victim.executor(1))
    await siege.attacker.create(pod("plain", schedulerName="other"))
    for name in (f"{victim.pod}-exec-1", victim.pod, thief.pod, "plain"):
        with pytest.raises(errors.Forbidden, match=NOT_OWN):
            await thief.api.delete(catalogue.PODS, name, hostile.ATTACKER)
        for metadata in ({"ownerReferences": [thief.owner]}, {"labels": {"spark-app-selector": "mine"}}):
            with pytest.raises(errors.Forbidden, match=NOT_OWN):
                await thief.api.patch(catalogue.PODS, name, {"metadata": metadata}, hostile.ATTACKER)


async def has_taken_nothing(siege):
    thief, victim = siege.drivers
    left = {pod_view.metadata.name for pod_view in await siege.pods()}
    assert left >= {thief.pod, victim.pod, f"{victim.pod}-exec-1", "plain"}


def makes_executors(number):
    """More than the queue's limit holds, all at once; Spark itself stops at maxPendingPods."""

    async def act(siege):
        driver = await siege.begin_driver("crowd")
        requests = {"cpu": "1", "memory": "64Mi"}
        await driver.create_all(driver.executor(index, requests=requests) for index in range(number))

    return act


async def has_executors(siege):
    driver = await siege.begin_driver("restless")
    await driver.create_all(map(driver.executor, range(EXECUTORS)))


async def replaces_its_executors(siege):
    (driver,) = siege.drivers
    for number in range(EXECUTORS):
        with contextlib.suppress(errors.NotFound):  # the answer to a first request may have been lost
            await driver.api.delete(catalogue.PODS, f"{driver.pod}-exec-{number}", hostile.ATTACKER, grace_period_s=0)
    await driver.create_all(map(driver.executor, range(EXECUTORS)))


async def labels_its_executors(siege):
    (driver,) = siege.drivers
    for number in range(EXECUTORS):
        patch = {"metadata": {"labels": {"mark": str(uuid.uuid4())}}}
        await driver.api.patch(catalogue.PODS, f"{driver.pod}-exec-{number}", patch, hostile.ATTACKER)


async def outlives_nobody(siege):
    """When the application is deleted, the driver and all executors go with it."""
    await siege.attacker.api.delete(hostile.SPARKAPPS, "restless", hostile.ATTACKER)

    async def gone():
        return not await siege.pods()

    await siege.until(gone, "the driver and its executors are gone")


SERVED = ("endless", "huge", "headers", "silent", "nested", "wrong")


async def answers_the_operator(siege):
    """Drivers at whose ports somebody answers who is no Spark; one redirects to a server that must stay alone."""
    siege.aside = await siege.enter(rest.serve(rest.silent))
    behaviours = {name: getattr(rest, name) for name in SERVED} | {"elsewhere": rest.elsewhere(siege.aside)}
    for name, behaviour in behaviours.items():
        server = siege.servers[name] = await siege.enter(rest.serve(behaviour))
        pod = await siege.driver_pod(hostile.application(name, sparkConf={"spark.ui.port": str(server.port)}))
        here = rest.address()
        status = {"podIP": here, "podIPs": [{"ip": here}]}
        await siege.admin.patch_status(catalogue.PODS, pod.metadata.name, status, hostile.ATTACKER)
    await siege.until(
        lambda: all(server.requests for server in siege.servers.values()), "the operator has read from all drivers"
    )


async def is_read_within_bounds(siege):
    await continues(siege)
    assert siege.aside.requests == 0, "the operator followed a redirect"
    for name, server in siege.servers.items():
        assert server.sent_bytes / server.requests < MOST_SENT_BYTES, name
        application = await siege.admin.get(hostile.SPARKAPPS, name, hostile.ATTACKER)
        assert application["status"]["phase"] == "Running", name
        assert len(json.dumps(application["status"])) < MOST_STATUS_BYTES, name


ATTACKS = (
    Attack(name="a driver that creates what it may not", act=creates_what_it_may_not, holds=has_created_nothing),
    Attack(name="a driver that takes pods of others", act=takes_what_others_have, holds=has_taken_nothing),
    Attack(
        name="a driver of 400 executors",
        act=makes_executors(400),
        holds=continues,
        most_writes=1_500,
        most_events=1_500,
    ),
    Attack(
        name="a driver of 10,000 executors",
        act=makes_executors(10_000),
        holds=continues,
        most_writes=5_000,
        most_events=5_000,
        long=True,
    ),
    Attack(
        name="a driver that replaces its executors in a loop",
        act=has_executors,
        again=replaces_its_executors,
        holds=continues,
        most_writes=3_000,
        most_events=3_000,
    ),
    Attack(
        name="a driver that labels its executors in a loop",
        act=has_executors,
        again=labels_its_executors,
        holds=continues,
        most_writes=200,
        most_events=200,
    ),
    Attack(
        name="drivers whose REST interface answers endlessly, elsewhere, wrongly or not at all",
        act=answers_the_operator,
        holds=is_read_within_bounds,
        most_writes=300,
        most_events=300,
    ),
    Attack(name="a driver whose application is deleted", act=has_executors, holds=outlives_nobody, long=True),
)
