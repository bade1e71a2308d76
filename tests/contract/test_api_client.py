"""Our client, informers, election and events against a real kube-apiserver: what the fake one only claims."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import time
import urllib.parse
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from boathouse.cluster import (
    catalogue,
    client,
    config,
    election,
    errors,
    events as event_writer,
    informer,
    retries,
    store,
    wire,
)
from boathouse.resources.config import LeaseConfig
from boathouse.services.frame.related_objects import RelatedObjects

pytestmark = pytest.mark.apiserver

EPOCH = "boathouse.dev/epoch"


def pod(name, namespace, *, node="", limits=None, **spec):
    container = {"name": "task", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    container["resources"] |= {"limits": limits} if limits else {}
    spec = {"schedulerName": "boathouse", "containers": [container], **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@asynccontextmanager
async def in_background(coroutine):
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


# Pods


async def test_a_secret_that_a_kubelet_lacks_is_read_from_the_events_of_the_pod(api, namespace):
    made = await api.create_pod(namespace, pod("p", namespace))
    note = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
    written = {"apiVersion": "v1", "kind": "Event", "reason": "FailedMount", "type": "Warning", "message": note}
    written["metadata"] = {"name": "p.1", "namespace": namespace}
    written["involvedObject"] = {"kind": "Pod", "name": "p", "namespace": namespace, "uid": made.metadata.uid}
    await api.create(catalogue.Resource(plural="events", kind="Event", view=wire.Manifest), written, namespace)
    related = RelatedObjects(api, time.monotonic)
    problem = await related.missing_in_volumes(namespace, made.metadata.uid)
    assert problem is not None
    assert (problem.reason, problem.message) == ("SecretNotFound", note)
    assert await related.missing_in_volumes(namespace, "00000000-0000-0000-0000-000000000000") is None


async def test_a_bind_sets_node_and_annotation_once(api, namespace):
    made = await api.create_pod(namespace, pod("p", namespace))
    await api.bind(namespace, "p", made.metadata.uid, "a-node-that-does-not-exist", {EPOCH: "7"})
    bound = await api.get(catalogue.PODS, "p", namespace)
    assert (bound.spec.node_name, bound.metadata.annotations[EPOCH]) == ("a-node-that-does-not-exist", "7")
    with pytest.raises(errors.Conflict):
        await api.bind(namespace, "p", made.metadata.uid, "a-node-that-does-not-exist")


async def test_a_bind_with_another_uid_is_a_conflict(api, namespace):
    await api.create_pod(namespace, pod("p", namespace))
    with pytest.raises(errors.Conflict):
        await api.bind(namespace, "p", "00000000-0000-0000-0000-000000000000", "n")


async def test_a_bind_of_a_gated_pod_is_a_conflict_and_of_none_is_not_found(api, namespace):
    gated = await api.create_pod(namespace, pod("p", namespace, schedulingGates=[{"name": "boathouse.dev/wait"}]))
    with pytest.raises(errors.Conflict):
        await api.bind(namespace, "p", gated.metadata.uid, "n")
    with pytest.raises(errors.NotFound):
        await api.bind(namespace, "absent", "00000000-0000-0000-0000-000000000000", "n")


async def test_a_pod_is_created_on_its_node_in_one_write(api, namespace):
    made = await api.create_pod(namespace, pod("p", namespace, node="n"))
    assert made.spec.node_name == "n"
    with pytest.raises(errors.AlreadyExists):
        await api.create_pod(namespace, pod("p", namespace, node="n"))


async def test_limits_become_requests_where_none_are_given(api, namespace):
    manifest = pod("p", namespace)
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    made = await api.create_pod(namespace, manifest)
    assert made.spec.containers[0].resources.requests["cpu"] == "1"


async def test_a_waiting_burstable_pod_shrinks_and_its_qos_class_stays(api, namespace):
    await api.create_pod(namespace, pod("p", namespace, limits={"cpu": "1", "memory": "65Mi"}))
    small = {"requests": {"cpu": "1m"}, "limits": {"cpu": "10m"}}
    resized = await api.resize(namespace, "p", {"task": small})
    assert resized.spec.containers[0].resources.requests == {"cpu": "1m", "memory": "64Mi"}
    equal = {"cpu": "10m", "memory": "65Mi"}
    with pytest.raises(errors.Invalid, match="QOS"):
        await api.resize(namespace, "p", {"task": {"requests": equal, "limits": equal}})


async def test_a_pods_condition_is_patched_strategically(api, namespace):
    made = await api.create_pod(namespace, pod("p", namespace))
    for reason in ("Unschedulable", "SchedulerError"):
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "no room"}
        await api.patch_status(
            catalogue.PODS,
            "p",
            {"conditions": [condition]},
            namespace,
            style=client.PatchStyle.STRATEGIC,
            uid=made.metadata.uid,
        )
    patched = await api.get(catalogue.PODS, "p", namespace)
    assert [(c.type, c.reason) for c in patched.status.conditions] == [("PodScheduled", "SchedulerError")]
    with pytest.raises(errors.Conflict):
        await api.patch_status(catalogue.PODS, "p", {"phase": "Failed"}, namespace, uid="another")


async def test_a_delete_with_another_uid_is_a_conflict(api, namespace):
    made = await api.create_pod(namespace, pod("p", namespace))
    with pytest.raises(errors.Conflict):
        await api.delete(catalogue.PODS, "p", namespace, uid="another")
    await api.delete(catalogue.PODS, "p", namespace, uid=made.metadata.uid)
    with pytest.raises(errors.NotFound):
        await api.get(catalogue.PODS, "p", namespace)


# Other kinds


async def test_a_stale_replace_is_a_conflict(api, namespace):
    stale = await api.create(catalogue.CONFIG_MAPS, config_map("c"), namespace)
    await api.patch(catalogue.CONFIG_MAPS, "c", {"data": {"a": "1"}}, namespace)
    with pytest.raises(errors.Conflict):
        await api.replace(catalogue.CONFIG_MAPS, "c", stale, namespace)


async def test_an_apply_owns_its_fields_and_takes_others_only_by_force(api, namespace):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    await api.create(catalogue.CONFIG_MAPS, config_map("c", a="theirs"), namespace)
    other = {**body, "data": {"a": "applied"}}
    applied = await api.patch(catalogue.CONFIG_MAPS, "c", other, namespace, style=client.PatchStyle.APPLY, force=True)
    assert applied["data"] == {"a": "applied"}


async def test_a_dry_run_leaves_nothing(api, namespace):
    await api.create(catalogue.CONFIG_MAPS, config_map("c"), namespace, dry_run=True)
    with pytest.raises(errors.NotFound):
        await api.get(catalogue.CONFIG_MAPS, "c", namespace)


async def test_a_list_in_pages_has_one_revision(api, namespace):
    for number in range(7):
        await api.create(catalogue.CONFIG_MAPS, config_map(f"c{number}"), namespace)
    first = await api.list_page(catalogue.CONFIG_MAPS, namespace, limit=3)
    second = await api.list_page(
        catalogue.CONFIG_MAPS, namespace, limit=3, continue_token=first.metadata.continue_token
    )
    assert (len(first.items), len(second.items)) == (3, 3)
    assert first.metadata.resource_version == second.metadata.resource_version


async def test_a_token_tells_its_pod_and_its_audience(api, namespace):
    made = await api.create_pod(namespace, pod("p", namespace, serviceAccountName="default"))
    token = await token_of(api, namespace, made, "boathouse.dev")
    status = await api.token_review(token, "boathouse.dev")
    assert (status.authenticated, status.user.pod_name, status.user.pod_uid) == (True, "p", made.metadata.uid)
    assert status.user.username == f"system:serviceaccount:{namespace}:default"
    assert not (await api.token_review(token, "somebody.else")).authenticated
    assert not (await api.token_review("no token at all", "boathouse.dev")).authenticated


async def token_of(api, namespace, made, audience):
    accounts = catalogue.Resource(plural="serviceaccounts/default/token", kind="TokenRequest", view=dict)
    bound_to = {"kind": "Pod", "apiVersion": "v1", "name": made.metadata.name, "uid": made.metadata.uid}
    spec = {"audiences": [audience], "expirationSeconds": 600, "boundObjectRef": bound_to}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return (await api.create(accounts, request, namespace))["status"]["token"]


async def test_a_token_of_an_account_authenticates_it(api, namespace):
    token = await api.create_token(namespace, "default", 3600)
    status = await api.token_review(token, "https://kubernetes.default.svc.cluster.local")
    assert status.user.username == f"system:serviceaccount:{namespace}:default"


async def test_a_wrong_token_is_unauthorized(control_plane):
    settings = dataclasses.replace(config.from_kubeconfig(control_plane.kubeconfig), client_pem=None, token="wrong")
    async with client.ApiClient(settings) as stranger:
        with pytest.raises(errors.Unauthorized):
            await stranger.list(catalogue.NODES)


async def test_a_server_of_another_authority_is_not_spoken_to(control_plane):
    settings = dataclasses.replace(config.from_kubeconfig(control_plane.kubeconfig), ca_pem=None)
    async with client.ApiClient(settings) as wary:
        with pytest.raises(errors.ConnectionLost, match="certificate"):
            await wary.list(catalogue.NODES)


# Informers


@asynccontextmanager
async def informed(api, resource=catalogue.PODS, **options):
    changes: list[store.Change] = []
    followed = informer.Informer(api, resource, on_change=changes.append, **options)
    async with in_background(followed.run()):
        await followed.synced.wait()
        yield followed, changes


def break_connections(port):
    """Shut this process's connections to a port down."""
    for descriptor in (int(entry.name) for entry in Path("/proc/self/fd").iterdir()):
        with suppress(OSError), socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as connection:
            if connection.getpeername()[1:2] == (port,):
                connection.shutdown(socket.SHUT_RDWR)


def names(changes):
    return [(type(change).__name__, change.key.partition("/")[2]) for change in changes]


async def test_a_pod_that_ends_leaves_accounting_and_arrives_among_the_ended(api, namespace, eventually):
    holding = informed(api, namespaces=[namespace], fields=catalogue.PODS_THAT_HOLD_RESOURCES)
    ended = informed(api, namespaces=[namespace], fields=catalogue.PODS_THAT_ENDED)
    async with holding as (_, held), ended as (_, over):
        await api.create_pod(namespace, pod("p", namespace))
        await api.patch_status(catalogue.PODS, "p", {"phase": "Succeeded"}, namespace)
        await eventually(lambda: names(held) == [("Added", "p"), ("Deleted", "p")] and names(over) == [("Added", "p")])


async def test_a_lost_watch_over_https_loses_nothing(api, namespace, eventually):
    async with informed(api, namespaces=[namespace]) as (followed, changes):
        await api.create_pod(namespace, pod("a", namespace))
        await eventually(lambda: len(changes) == 1)
        break_connections(urllib.parse.urlsplit(api._transport._config.server).port)
        await retries.retrying(lambda: api.delete(catalogue.PODS, "a", namespace), idempotent=True)
        await eventually(lambda: names(changes)[-1] == ("Deleted", "a"))
        assert not await followed.compare()


async def test_every_node_of_the_cluster_is_read(api):
    async with informed(api, catalogue.NODES) as (followed, _):
        assert len(followed.objects) == 4
        assert all(node.status.allocatable["pods"] for node in followed.objects.values())


# Leaders and events


@dataclasses.dataclass
class Clock:
    """Stands still until it is put forward: so a lease outlasts any pause of the machine."""

    now_s: float = 0.0


async def test_the_lease_passes_from_leader_to_leader_with_a_higher_epoch(api, namespace, eventually):
    lease, clock = LeaseConfig(), Clock()
    lost: list[str] = []

    def candidate(identity):
        return election.LeaderElection(
            api,
            namespace=namespace,
            identity=identity,
            on_lost=lost.append,
            lease=lease,
            monotonic=lambda: clock.now_s,
            sleep=lambda _: asyncio.sleep(0.05),  # often, but with the patience of real times
        )

    first, second = candidate("first"), candidate("second")
    async with in_background(first.run()):
        assert await first.acquired() == 1
        async with in_background(second.run()):
            for _ in range(int(2 * lease.duration_seconds)):
                clock.now_s += 1
                await eventually(lambda: first._renewed_at == second._observed_at == clock.now_s)
            assert first.valid()
            assert second.epoch is None
            await first.release()
            assert await second.acquired() == 2
    written = await api.get(catalogue.LEASES, "boathouse", namespace)
    assert (written.spec.holder_identity, written.spec.lease_transitions) == ("second", 2)


async def test_events_are_taken_and_repeated_ones_become_a_series(api, namespace, monkeypatch):
    monkeypatch.setattr(event_writer, "WINDOW_S", 0)
    made = await api.create_pod(namespace, pod("p", namespace))
    events = event_writer.EventWriter(api, controller="boathouse.dev/scheduler", instance="test")
    async with in_background(events.run()):
        for _ in range(2):
            events.publish(
                event_writer.reference(catalogue.PODS, namespace, made.metadata.name, made.metadata.uid),
                type_="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note="no room",
            )
            await events.drain(60)
    (event,) = (await api.list(catalogue.EVENTS, namespace)).items
    assert (event["regarding"]["uid"], event["note"], event["series"]["count"]) == (made.metadata.uid, "no room", 2)
