"""Queues: their weights, their limits, which one a pod is charged to, and what is shown of them."""

import collections

import pytest

from boathouse.resources.config import OperatorConfig, QueueConfig
from tests.builders import manifests
from tests.builders.operators.schedulers import scheduling


def configured(*queues: QueueConfig, **more) -> OperatorConfig:
    return OperatorConfig(queues=[QueueConfig(name="default"), *queues], **more)


def add_pods(api, queue: str, count: int, *, namespace: str = "demo", cpu: str = "1") -> None:
    for i in range(count):
        labels = {"boathouse.dev/queue": queue} if queue else {}
        api.add(manifests.pod(f"{queue or 'plain'}-{i:02}", namespace=namespace, cpu=cpu, labels=labels))


def held(w) -> dict[str, int]:
    return dict(collections.Counter(key.split("/")[1].split("-")[0] for key in w.placed()))


@pytest.mark.parametrize(("weights", "expected"), [((2, 1), (6, 3)), ((1, 1), (5, 4)), ((8, 1), (8, 1))])
async def test_queues_share_a_full_cluster_by_their_weights(api, eventually, weights, expected):
    api.add(manifests.node("n1", cpu="9"))
    config = configured(QueueConfig(name="a", weight=weights[0]), QueueConfig(name="b", weight=weights[1]))
    add_pods(api, "b", 12)
    add_pods(api, "a", 12)
    async with scheduling(api, config=config) as w:
        await eventually(lambda: len(w.placed()) == 9)
    assert held(w) == dict(zip("ab", expected, strict=True))


async def test_a_queue_alone_takes_the_whole_cluster_and_gives_way_as_its_pods_end(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    config = configured(QueueConfig(name="a"), QueueConfig(name="b"))
    add_pods(api, "a", 8)
    async with scheduling(api, config=config) as w:
        await eventually(lambda: held(w) == {"a": 4})
        add_pods(api, "b", 8)
        await eventually(lambda: w.condition("demo/b-07"))
        await eventually(w.at_rest)
        assert held(w) == {"a": 4}
        for key in sorted(w.placed())[:2]:
            api.remove("pods", key)
        await eventually(lambda: held(w) == {"a": 2, "b": 2})


async def test_a_queue_does_not_exceed_its_limit_and_its_pods_say_so(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    add_pods(api, "a", 5)
    async with scheduling(api, config=configured(QueueConfig(name="a", limits={"cpu": "3"}))) as w:
        await eventually(lambda: len(w.placed()) == 3)
        await eventually(lambda: all(w.condition(key) for key in w.waiting()))
    reasons = {w.condition(key)["reason"] for key in w.waiting()}
    assert reasons == {"QueueLimit"}
    assert "queue 'a' holds 3000 of its limit of 3000 cpu" in w.condition(w.waiting()[0])["message"]


async def test_a_pod_of_a_queue_that_does_not_exist_says_so(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    add_pods(api, "nowhere", 1)
    async with scheduling(api) as w:
        await eventually(lambda: w.condition("demo/nowhere-00"))
    assert w.condition("demo/nowhere-00")["reason"] == "UnknownQueue"
    assert not w.placed()


async def test_a_pod_that_names_no_queue_is_charged_to_that_of_its_namespace(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    labelled = {"name": "labelled", "labels": {"boathouse.dev/queue": "a"}}
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": labelled})
    config = configured(QueueConfig(name="a"), QueueConfig(name="b"), namespace_queues={"listed": "b", "labelled": "b"})
    for namespace in ("labelled", "listed", "neither"):
        add_pods(api, "", 1, namespace=namespace)
    async with scheduling(api, config=config) as w:
        await eventually(lambda: len(w.placed()) == 3)
        await eventually(lambda: w.metric("boathouse_queue_used_cpu_cores", queue="a") == 1)
        used = {name: w.metric("boathouse_queue_used_cpu_cores", queue=name) for name in ("a", "b", "default")}
    assert used == {"a": 1, "b": 1, "default": 1}


async def test_what_a_queue_demands_uses_and_is_due_is_measured(api, eventually):
    api.add(manifests.node("n1", cpu="4", memory="64Gi"))
    config = configured(QueueConfig(name="a", weight=3), QueueConfig(name="b"))
    add_pods(api, "a", 6)
    add_pods(api, "b", 6)
    async with scheduling(api, config=config) as w:
        await eventually(lambda: len(w.placed()) == 4)
        await eventually(w.at_rest)
        found = {
            name: [w.metric(f"boathouse_queue_{name}", queue=queue) for queue in ("a", "b", "default")]
            for name in ("demand_cpu_cores", "used_cpu_cores", "dominant_share_ratio", "fair_share_ratio")
        }
    assert found == {
        "demand_cpu_cores": [6, 6, 0],
        "used_cpu_cores": [3, 1, 0],
        "dominant_share_ratio": [0.75, 0.25, 0],
        "fair_share_ratio": [0.75, 0.25, 0],
    }


CLOSED = configured(QueueConfig(name="nightly", namespaces=["batch"], priority_classes=["low"]))


async def test_a_pod_that_its_queue_does_not_accept_says_so(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    add_pods(api, "nightly", 1, namespace="stranger")
    labels = {"boathouse.dev/queue": "nightly"}
    api.add(manifests.pod("urgent", namespace="batch", labels=labels, priorityClassName="high", priority=9))
    async with scheduling(api, config=CLOSED) as w:
        await eventually(lambda: w.condition("stranger/nightly-00") and w.condition("batch/urgent"))
    found = [w.condition(key) for key in ("stranger/nightly-00", "batch/urgent")]
    assert {one["reason"] for one in found} == {"QueueNotAllowed"}
    assert [one["message"] for one in found] == [
        "queue 'nightly' does not accept this namespace",
        "queue 'nightly' does not accept priority class 'high'",
    ]
    assert not w.placed()


async def test_pods_of_other_schedulers_are_charged_to_no_queue(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    labels = {"boathouse.dev/queue": "nightly", "boathouse.dev/job-uid": "any"}
    api.add(manifests.pod("theirs", namespace="batch", scheduler="other", node="n1", cpu="3", labels=labels))
    add_pods(api, "nightly", 1, namespace="batch")
    async with scheduling(api, config=CLOSED) as w:
        await eventually(lambda: w.metric("boathouse_queue_used_cpu_cores", queue="nightly"))
        assert w.metric("boathouse_queue_used_cpu_cores", queue="nightly") == 1


async def test_pods_of_one_owner_in_two_queues_are_charged_to_the_queues_that_they_name(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    for i, queue in enumerate(("default", "a", "a")):
        labels = {"boathouse.dev/queue": queue}
        api.add(manifests.pod(f"web-{i}", cpu="1", labels=labels, owner=owner))
    async with scheduling(api, config=configured(QueueConfig(name="a", limits={"cpu": "1"}))) as w:
        await eventually(lambda: len(w.placed()) == 2 and w.at_rest())
    assert w.condition(w.waiting()[0])["reason"] == "QueueLimit"


async def test_a_waiting_pod_follows_its_namespaces_label(api, eventually):
    api.add(manifests.node("n1", cpu="9"))
    namespace = {"name": "stranger", "labels": {"boathouse.dev/queue": "nightly"}}
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    add_pods(api, "", 1, namespace="stranger")
    async with scheduling(api, config=CLOSED) as w:
        await eventually(lambda: w.condition("stranger/plain-00").get("reason") == "QueueNotAllowed")
        api.change("namespaces", "stranger", {"metadata": {"labels": {"boathouse.dev/queue": "default"}}})
        await eventually(w.placed)
