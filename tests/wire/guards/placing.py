"""Guards of placing and committing: no node over-committed, no pod bound twice, no output counted twice."""

from __future__ import annotations

import dataclasses
from concurrent import futures

from boathouse.cluster import client as clients, store
from boathouse.scheduling.pods import requests
from boathouse_e2e import invariants
from boathouse_policies import framework, model
from boathouse_task import locations, storage
from tests.builders import manifests
from tests.builders.operators.informers import cached, following, stored
from tests.builders.operators.schedulers import LEASE, Leader, scheduling
from tests.wire import waiting
from tests.wire.guards import Guard


def over_commits(api):
    nodes = {name: node["status"]["allocatable"] for name, node in api.objects("nodes").items()}
    return invariants.over_commits([{"type": "ADDED", "object": pod} for pod in api.objects("pods").values()], nodes)


# Scenarios: each returns what broke


async def placing_before_the_watch_tells(api, _tmp):
    api.add(manifests.node("n1", cpu="2"))
    async with scheduling(api, pending_ahead=0) as w:
        api.watches.silence("pods")
        w.submit("first", 2)
        await waiting.eventually(lambda: len(w.placed()) == 2)
        w.submit("second", 2)
        await waiting.eventually(lambda: w.scheduler.diagnosis("second") or len(w.placed()) == 4)
    return over_commits(api)


async def a_pod_replaced_while_its_bind_is_on_its_way(api, _tmp):
    api.add(manifests.node("n1"))

    def replace_first(call, _manifest):
        if call.name == "create pods/binding":
            api.refuse = lambda *_: None
            api.remove("pods", "demo/p")
            api.add(manifests.pod("p", nodeSelector={"zone": "elsewhere"}))

    api.refuse = replace_first
    async with scheduling(api) as w:
        api.add(manifests.pod("p"))
        await waiting.eventually(lambda: api.called("create pods/binding") and w.at_rest())
        return list(w.placed())


async def a_deletion_while_no_watch_is_open(api, _tmp):
    async with api.client() as client, following(api, client) as (followed, _):
        api.add(manifests.pod("p"))
        await waiting.eventually(lambda: cached(followed) == stored(api))
        lists = len(api.called("list pods"))
        api.watches.expire("pods")
        api.remove("pods", "demo/p")
        await waiting.eventually(lambda: len(api.called("list pods")) > lists and api.watches.count("pods"))
        return list(await followed.compare(settle_s=0))


async def a_former_leader_that_still_writes(api, _tmp):
    api.add(manifests.node("n1", cpu="1"))
    lease = {"name": "boathouse", "namespace": "boathouse-system"}
    api.add({"kind": "Lease", "metadata": lease, "spec": {"leaseTransitions": 2}})
    api.fence_by(LEASE)
    async with scheduling(api, leader=Leader(epoch=1), pending_ahead=0) as w:
        w.submit("old", 1)
        await waiting.eventually(lambda: api.called("create pods") and (w.fatal or w.placed()))
        return list(w.placed())


async def pods_that_need_more_to_start_than_to_run(api, _tmp):
    api.add(manifests.node("n1", cpu="2"))
    step = {"name": "init", "resources": {"requests": {"cpu": "2"}}}
    async with scheduling(api) as w:
        for name in ("a", "b"):
            api.add(manifests.pod(name, cpu="1", initContainers=[step]))
        await waiting.eventually(lambda: len(w.placed()) == 2 or (w.placed() and w.condition(w.waiting()[0])))
    return over_commits(api)


async def two_attempts_that_commit_at_once(_api, tmp_path):
    place = storage.Storage(None, {}, part_bytes=1 << 20)
    target = locations.parse(f"file://{tmp_path}/_commit/m-00000")
    with futures.ThreadPoolExecutor(2) as attempts:
        winners = sum(attempts.map(lambda attempt: place.create(target, attempt), (b"1", b"2")))
    return [] if winners == 1 else [f"{winners} attempts hold their output for the one that counts"]


# Guards, and how each is broken


def without_assuming(patch):
    whole = framework.Ledger.assume

    def assume(self, decision):
        return whole(self, dataclasses.replace(decision, resources=model.Resources()))

    patch.setattr(framework.Ledger, "assume", assume)


def without_the_uid(patch):
    whole = clients.ApiClient.bind

    async def bind(self, namespace, name, uid, node, annotations=None, labels=None):
        del uid
        await whole(self, namespace, name, "", node, annotations, labels)

    patch.setattr(clients.ApiClient, "bind", bind)


def without_the_difference_of_a_new_list(patch):
    def finish(self):
        self._store.revision = self._revision
        return iter(())

    patch.setattr(store.Listing, "finish", finish)


def without_its_own_epoch(patch):
    of_the_lease = property(lambda _: 2, lambda *_: None)
    patch.setattr(Leader, "epoch", of_the_lease, raising=False)


def without_init_containers(patch):
    patch.setattr(requests, "_include_init_containers", lambda *_, **__: None)


def without_exclusive_create(patch):
    def create(self, location, content):
        self.write(location, content)
        return True

    patch.setattr(storage.Storage, "create", create)


GUARDS = {
    "assume": Guard(placing_before_the_watch_tells, without_assuming),
    "uid-check": Guard(a_pod_replaced_while_its_bind_is_on_its_way, without_the_uid),
    "relist-difference": Guard(a_deletion_while_no_watch_is_open, without_the_difference_of_a_new_list),
    "epoch": Guard(a_former_leader_that_still_writes, without_its_own_epoch),
    "request-formula": Guard(pods_that_need_more_to_start_than_to_run, without_init_containers),
    "exclusive-commit": Guard(two_attempts_that_commit_at_once, without_exclusive_create),
}
