"""Guards of queues: a namespace's share, priority within it only, who may use a queue, and whose names are shown."""

from __future__ import annotations

import collections

from boathouse.resources.config import OperatorConfig, QueueConfig
from boathouse.scheduling.pods import indexes, ownership
from boathouse.services.frame.kind import Refusal
from boathouse.services.mrjob import model as mrjobs
from boathouse_policies import model, profiles
from boathouse_policies.framework import turn_order
from boathouse_policies.framework.queue import sorted_classes
from tests.builders import manifests
from tests.builders.mrjobs import mrjob
from tests.builders.operators.schedulers import scheduling
from tests.wire import waiting
from tests.wire.guards import Guard

CLOSED = OperatorConfig(
    queues=[
        QueueConfig(name="default"),
        QueueConfig(name="nightly", namespaces=["batch"], priority_classes=["low"], limits={"cpu": "2"}),
    ]
)


def add_pods(api, namespace, count, *, prefix="p", **fields):
    for i in range(count):
        api.add(manifests.pod(f"{prefix}{i:02}", namespace=namespace, cpu="1", **fields))


def by_namespace(w):
    return dict(collections.Counter(key.partition("/")[0] for key in w.placed()))


# Scenarios: each returns what broke


async def a_namespace_of_many_pods_of_a_high_priority(api, _tmp):
    api.add(manifests.node("n1", cpu="8"))
    add_pods(api, "greedy", 12, priority=1_000_000_000)
    add_pods(api, "modest", 12)
    async with scheduling(api) as w:
        await waiting.eventually(lambda: len(w.placed()) == 8)
        found = by_namespace(w)
    return [] if found == {"greedy": 4, "modest": 4} else [found]


async def a_namespace_that_holds_much_of_a_queue_when_another_submits(api, _tmp):
    api.add(manifests.node("n1", cpu="8"))
    add_pods(api, "early", 6, node="n1", phase="Running")
    add_pods(api, "early", 6, prefix="more")
    add_pods(api, "late", 6)
    async with scheduling(api) as w:
        await waiting.eventually(lambda: len(w.placed()) == 8)
        found = by_namespace(w)
    return [] if found == {"early": 6, "late": 2} else [found]


async def a_pod_that_fits_nowhere_while_nodes_are_reserved(api, _tmp):
    for node in ("n1", "n2"):
        api.add(manifests.node(node, cpu="4"))
        add_pods(api, "steady", 4, prefix=node, node=node, phase="Running")
    add_pods(api, "steady", 8, prefix="more")
    api.add(manifests.pod("giant", namespace="greedy", cpu="4"))
    async with scheduling(api, profile=profiles.build("yarn-me")) as w:
        await waiting.eventually(lambda: w.condition("greedy/giant"))
        for node in ("n1", "n2"):
            api.remove("pods", f"steady/{node}00")
        await waiting.eventually(lambda: "steady/n200" not in w.scheduler.state.ledger and w.at_rest())
        found = len(w.placed())
    return [] if found == 7 else [f"{found} pods run while one waits for an empty node"]


async def pods_that_name_an_owner_of_another_namespace(api, _tmp):
    labels = {"boathouse.dev/queue": "nightly"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "theirs", "controller": True}
    api.add(manifests.node("n1", cpu="8"))
    add_pods(api, "batch", 1, labels=labels, owner=owner)
    add_pods(api, "stranger", 1, labels=labels, owner=owner)
    async with scheduling(api, config=CLOSED) as w:
        await waiting.eventually(lambda: w.placed() and w.at_rest())
        return [key for key in w.placed() if not key.startswith("batch/")]


async def pods_of_a_queue_that_does_not_accept_them(api, _tmp):
    labels = {"boathouse.dev/queue": "nightly"}
    api.add(manifests.node("n1", cpu="8"))
    add_pods(api, "stranger", 2, labels=labels)
    add_pods(api, "batch", 1, prefix="urgent", labels=labels, priorityClassName="high", priority=9)
    add_pods(api, "batch", 2, labels=labels, priorityClassName="low")
    async with scheduling(api, config=CLOSED) as w:
        await waiting.eventually(lambda: len(w.placed()) >= 2 and w.at_rest())
        return [key for key in w.placed() if not key.startswith("batch/p")]


async def a_namespace_whose_label_names_a_queue_that_does_not_accept_it(api, _tmp):
    labels = {"boathouse.dev/queue": "nightly"}
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "stranger", "labels": labels}})
    api.add(manifests.node("n1", cpu="8"))
    add_pods(api, "stranger", 1)
    async with scheduling(api, config=CLOSED) as w:
        await waiting.eventually(lambda: w.placed() or w.condition("stranger/p00"))
        return list(w.placed())


async def a_pod_on_a_node_that_names_a_queue_that_does_not_accept_it(api, _tmp):
    labels = {"boathouse.dev/queue": "nightly"}
    api.add(manifests.node("n1", cpu="8"))
    add_pods(api, "stranger", 2, labels=labels, node="n1", phase="Running")
    add_pods(api, "batch", 2, labels=labels)
    async with scheduling(api, config=CLOSED) as w:
        await waiting.eventually(lambda: len(w.placed()) == 4 or w.condition("batch/p00"))
        return [] if len(w.placed()) == 4 else ["the queue's limit is used up by others"]


async def a_job_of_a_queue_that_does_not_accept_it(_api, _tmp):
    found = mrjobs.from_resource(mrjob(queue="nightly"), CLOSED)
    refused = isinstance(found, Refusal) and found.reason == "QueueNotAllowed"
    return [] if refused else [found]


async def a_pod_that_waits_beside_pods_of_another_namespace(api, _tmp):
    api.add(manifests.node("n1", cpu="4"))
    add_pods(api, "acquisitions", 3, prefix="secret", node="n1", phase="Running")
    add_pods(api, "demo", 1, prefix="own", node="n1", phase="Running")
    add_pods(api, "demo", 1)
    async with scheduling(api) as w:
        await waiting.eventually(lambda: w.condition("demo/p00") and w.events("FailedScheduling"))
        said = [w.condition("demo/p00")["message"], *(event["note"] for event in w.events("FailedScheduling"))]
    leaks = [text for text in said if "secret" in text or "acquisitions" in text]
    return leaks or [text for text in said if "demo/own00 holds 1, other namespaces hold 3" not in text]


# Guards, and how each is broken


def without_shares_of_namespaces(patch):
    patch.setattr(sorted_classes, "_place", lambda one: (one.job.queue, "", -one.job.priority, *one.rank))
    patch.setattr(sorted_classes, "_band", lambda job: (job.queue, model.NamespaceName(""), job.priority))


def with_nothing_held(patch):
    patch.setattr(turn_order.TurnOrder, "_share_out", lambda *_: None)


def without_a_bound_of_reservations(patch):
    patch.setattr(turn_order.TurnOrder, "most_reserved", lambda *_: None)


def with_jobs_across_namespaces(patch):
    def job_of(pod):
        owner = pod.metadata.controller
        return model.JobId(owner.uid if owner is not None else pod.metadata.uid)

    patch.setattr(ownership, "job_of", job_of)


def with_queues_for_everybody(patch):
    patch.setattr(model.Queue, "accepts", lambda *_: True)


def with_jobs_for_every_queue(patch):
    patch.setattr(QueueConfig, "accepts_namespace", lambda *_: True)


def with_names_of_others(patch):
    whole = indexes.Holders.add

    def as_one_namespace(self, _namespace, owner, resources, sign):
        whole(self, "demo", owner, resources, sign)

    patch.setattr(indexes.Holders, "add", as_one_namespace)


GUARDS = {
    "namespaces' shares": Guard(a_namespace_of_many_pods_of_a_high_priority, without_shares_of_namespaces),
    "what a namespace holds": Guard(a_namespace_that_holds_much_of_a_queue_when_another_submits, with_nothing_held),
    "reserved nodes": Guard(a_pod_that_fits_nowhere_while_nodes_are_reserved, without_a_bound_of_reservations),
    "jobs within a namespace": Guard(pods_that_name_an_owner_of_another_namespace, with_jobs_across_namespaces),
    "queues' lists": Guard(pods_of_a_queue_that_does_not_accept_them, with_queues_for_everybody),
    "queues' lists and labels of namespaces": Guard(
        a_namespace_whose_label_names_a_queue_that_does_not_accept_it, with_queues_for_everybody
    ),
    "charges to queues": Guard(a_pod_on_a_node_that_names_a_queue_that_does_not_accept_it, with_queues_for_everybody),
    "queues of jobs": Guard(a_job_of_a_queue_that_does_not_accept_it, with_jobs_for_every_queue),
    "names of others": Guard(a_pod_that_waits_beside_pods_of_another_namespace, with_names_of_others),
}
