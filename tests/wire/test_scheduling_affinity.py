"""Pods are kept apart from, near to and evenly among others, also those of other schedulers."""

import pytest

from tests.builders import manifests
from tests.builders.operators.schedulers import scheduling

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def selecting(**labels):
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}


def apart(*terms):
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def near(*terms):
    return {"podAffinity": {REQUIRED: list(terms)}}


def add_nodes(api, *names, **labels):
    for name in names:
        api.add(manifests.node(name, labels={HOST: name, **labels}))


def add_existing(api, name, node, *, namespace="demo", **more):
    api.add(manifests.pod(name, namespace=namespace, node=node, phase="Running", scheduler="other", **more))


async def test_a_plain_pod_is_not_put_next_to_another_schedulers_pod_that_forbids_it(api, eventually):
    add_nodes(api, "n1", "n2")
    add_existing(api, "hermit", "n1", affinity=apart(selecting(app="web")))
    async with scheduling(api) as w:
        for i in range(3):
            api.add(manifests.pod(f"web-{i}", labels={"app": "web"}))
        api.add(manifests.pod("free", nodeSelector={HOST: "n1"}))
        await eventually(lambda: len(w.placed()) == 5)
        placed = w.placed()
    assert [placed[f"demo/web-{i}"] for i in range(3)] == ["n2"] * 3
    assert placed["demo/free"] == "n1"


async def test_queued_tasks_are_kept_from_pods_that_forbid_them_by_their_labels(api, eventually):
    add_nodes(api, "n1", "n2")
    add_existing(api, "hermit", "n1", affinity=apart(selecting(team="a")))
    async with scheduling(api) as w:
        w.submit("wc", 2, labels={"team": "a"})
        await eventually(lambda: {name: node for name, node in w.placed().items() if "/wc-" in name})
        await eventually(w.at_rest)
        assert {node for name, node in w.placed().items() if "/wc-" in name} == {"n2"}


async def test_replicas_that_exclude_each_other_get_a_node_each_and_the_rest_starts_when_one_ends(api, eventually):
    add_nodes(api, "n1", "n2")
    async with scheduling(api) as w:
        for i in range(3):
            api.add(manifests.pod(f"db-{i}", labels={"app": "db"}, affinity=apart(selecting(app="db"))))
        await eventually(lambda: len(w.placed()) == 2)
        (left,) = {f"demo/db-{i}" for i in range(3)} - w.placed().keys()
        await eventually(lambda: w.condition(left))
        message = w.condition(left)["message"]
        ended = next(name for name, node in w.placed().items() if node == "n2")
        api.end_pod(ended)
        await eventually(lambda: w.placed().get(left) == "n2")
    assert message == "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."


async def test_a_pod_starts_once_the_pod_that_it_follows_is_there(api, eventually):
    add_nodes(api, "n1", "n2")
    async with scheduling(api) as w:
        api.add(manifests.pod("cache", affinity=near(selecting(app="web"))))
        await eventually(lambda: w.condition("demo/cache"))
        add_existing(api, "web", "n2", labels={"app": "web"})
        await eventually(lambda: w.placed().get("demo/cache") == "n2")


async def test_pods_spread_evenly_over_zones_within_one_cycle(api, eventually):
    add_nodes(api, "n1", "n2", zone="a")
    add_nodes(api, "n3", zone="b")
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    async with scheduling(api) as w:
        for i in range(6):
            api.add(manifests.pod(f"web-{i}", labels={"app": "web"}, topologySpreadConstraints=[spread]))
        await eventually(lambda: len(w.placed()) == 6)
        nodes = list(w.placed().values())
    assert nodes.count("n3") == 3


async def test_pods_of_one_owner_are_distinguished_by_a_label_once_a_selector_depends_on_it(api, eventually):
    add_nodes(api, "n1", "n2")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    async with scheduling(api) as w:
        for i in range(2):  # no node has the label yet: they are pending, as one class
            api.add(manifests.pod(f"db-{i}", labels={"pod": f"db-{i}"}, owner=owner, nodeSelector={"x": "y"}))
        await eventually(lambda: w.condition("demo/db-1"))
        add_existing(api, "hermit", "n3", affinity=apart(selecting(pod="db-0")))
        add_nodes(api, "n3", x="y")
        await eventually(lambda: "demo/db-1" in w.placed())
        await eventually(w.at_rest)
        assert "demo/db-0" not in w.placed()
        add_nodes(api, "n4", x="y")
        await eventually(lambda: w.placed().get("demo/db-0") == "n4")


async def test_a_namespace_selector_follows_the_labels_of_namespaces(api, eventually):
    add_nodes(api, "n1")
    api.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo", "labels": {"env": "test"}}})
    term = selecting(app="web") | {"namespaceSelector": {"matchLabels": {"env": "test"}}}
    add_existing(api, "hermit", "n1", namespace="other", affinity=apart(term))
    async with scheduling(api) as w:
        api.add(manifests.pod("web", labels={"app": "web"}))
        await eventually(lambda: w.condition("demo/web"))
        message = w.condition("demo/web")["message"]
        api.change("namespaces", "demo", {"metadata": {"labels": {"env": "live"}}})
        await eventually(lambda: w.placed().get("demo/web") == "n1")
    assert "didn't satisfy existing pods anti-affinity rules" in message


async def test_a_nominated_pod_keeps_its_room_and_not_its_distance_before_it_is_there(api, eventually):
    add_nodes(api, "n1")
    nominee = manifests.pod("nominee", scheduler="other", affinity=apart(selecting(app="web")))
    nominee["status"]["nominatedNodeName"] = "n1"
    api.add(nominee)
    async with scheduling(api) as w:
        api.add(manifests.pod("web", labels={"app": "web"}))
        await eventually(lambda: w.placed().get("demo/web") == "n1")


@pytest.mark.parametrize(
    ("requirement", "values"),
    [
        ({"key": "index", "operator": "Exists"}, ["*"]),
        ({"key": "index", "operator": "NotIn", "values": ["7", "x"]}, ["*", "7"]),
        ({"key": "index", "operator": "DoesNotExist"}, ["*"]),
    ],
)
async def test_a_selector_of_all_namespaces_splits_no_class_by_values_that_it_does_not_name(
    api, eventually, requirement, values
):
    add_nodes(api, "n1")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "index", "uid": "u", "controller": True}
    term = {"topologyKey": HOST, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [requirement]}}
    async with scheduling(api) as w:
        for i in range(20):  # they are pending
            labels = {"index": str(i)}
            api.add(manifests.pod(f"job-{i}", labels=labels, owner=owner, nodeSelector={"x": "y"}))
        await eventually(lambda: w.condition("demo/job-19"))
        add_existing(api, "hermit", "n1", namespace="other", affinity=apart(term))
        classes = w.scheduler.state.queue.sorted_classes
        await eventually(
            lambda: (
                values == sorted(pending_class.task_class.labels.get("index", "") for pending_class in classes().queued)
            )
        )
