"""What waits is told why, and autoscalers are told only of want of nodes."""

import pytest

from boathouse.resources.config import AutoscalingConfig
from boathouse.scheduling import pod_conditions
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators.schedulers import QUEUE, scheduling


async def test_a_few_pods_of_a_job_that_waits_for_nodes_are_made_ahead(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=3) as w:
        w.submit("wc", 10)
        await eventually(lambda: len(w.waiting()) == 3)
        await eventually(lambda: all(w.condition(key).get("reason") == "Unschedulable" for key in w.waiting()))
        await eventually(w.at_rest)
    assert w.waiting() == ["demo/wc-00001", "demo/wc-00002", "demo/wc-00003"]
    assert list(w.placed()) == ["demo/wc-00000"]


async def test_a_pod_made_ahead_is_bound_when_there_is_room(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=1) as w:
        w.submit("wc", 2)
        await eventually(lambda: w.placed() and w.waiting())
        await eventually(lambda: w.condition("demo/wc-00001"))
        api.end_pod("demo/wc-00000")
        await eventually(lambda: "demo/wc-00001" in w.placed())
    assert len(api.called("create pods")) == 2
    assert w.condition("demo/wc-00001")["status"] == "True"


async def test_pods_made_ahead_are_taken_over_after_a_restart(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=2) as first:
        first.submit("wc", 3)
        await eventually(lambda: len(first.waiting()) == 2)
    async with scheduling(api, pending_ahead=2) as second:
        second.submit("wc", 3)
        for i in range(3):
            await eventually(lambda i=i: f"demo/wc-{i:05}" in second.placed())
            api.end_pod(f"demo/wc-{i:05}")
    assert len({pod["metadata"]["uid"] for pod in api.objects("pods").values()}) == 3


FIXED = {"autoscaling": AutoscalingConfig(enabled=False)}


async def test_where_no_node_can_come_a_job_that_is_too_large_makes_no_pods(api, eventually):
    api.add(manifests.node("n1", cpu="2"))
    async with scheduling(api, **FIXED) as w:
        w.submit("big", 2, cpu="64")
        await eventually(lambda: w.scheduler.diagnosis("big") and w.at_rest())
    assert w.scheduler.diagnosis("big").reason == "NeverFits"
    assert not api.objects("pods")


async def test_where_nodes_can_come_the_pods_of_a_job_that_is_too_large_buy_a_node(api, eventually):
    api.add(manifests.node("n1", cpu="2"))
    async with scheduling(api) as w:
        w.submit("big", 1, cpu="4")
        await eventually(lambda: w.waiting() and w.condition("demo/big-00000"))
        assert w.scheduler.diagnosis("big").reason == "NeverFits"
        assert w.condition("demo/big-00000")["reason"] == "Unschedulable"
        assert "the largest node has 2" in w.condition("demo/big-00000")["message"]
        api.add(manifests.node("n2", cpu="4"))
        await eventually(lambda: w.placed() == {"demo/big-00000": "n2"})


@pytest.mark.parametrize(("options", "reason"), [({}, "Unschedulable"), (FIXED, "NeverFits")])
async def test_a_foreign_pod_that_is_too_large_for_any_node_buys_one_where_nodes_can_come(
    api, eventually, options, reason
):
    api.add(manifests.node("n1", cpu="2"))
    async with scheduling(api, **options) as w:
        api.add(manifests.pod("big", cpu="64"))
        await eventually(lambda: w.condition("demo/big"))
    assert (w.condition("demo/big")["status"], w.condition("demo/big")["reason"]) == ("False", reason)


async def test_a_pod_held_back_by_its_queues_limit_buys_no_node(api, eventually):
    api.add(manifests.node("n1", cpu="8"))
    async with scheduling(api) as w:
        w.scheduler.set_queues([model.Queue.of(QUEUE, limits={"cpu": 1000})])
        for name in ("a", "b"):
            api.add(manifests.pod(name, cpu="1"))
        await eventually(lambda: len(w.placed()) == 1 and any(w.condition(key) for key in w.waiting()))
    (held,) = w.waiting()
    assert w.condition(held)["reason"] == "QueueLimit"


async def test_a_pod_that_waits_learns_what_is_scarce_and_who_holds_it(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    for namespace, cpu in (("demo", "3"), ("default", "500m")):
        theirs = {"scheduler": "default-scheduler", "phase": "Running"}
        api.add(manifests.pod("hog", namespace=namespace, cpu=cpu, node="n1", **theirs))
    async with scheduling(api) as w:
        api.add(manifests.pod("p", cpu="1"))
        await eventually(lambda: w.condition("demo/p"))
    assert w.condition("demo/p")["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. Each requests 1 cpu; demo/hog holds 3, other namespaces hold 0.5."
    )
    assert w.condition("demo/p")["observedGeneration"] == 1


async def test_a_jobs_diagnosis_counts_its_tasks_and_names_the_jobs_ahead_of_it(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("first", 4)
        await eventually(lambda: len(w.placed()) == 4)
        w.submit("second", 3, submitted_s=1)
        await eventually(lambda: w.scheduler.diagnosis("second"))
    found = w.scheduler.diagnosis("second")
    assert (found.reason, found.scarce) == ("Unschedulable", "cpu")
    assert found.message == (
        "3 tasks pending: 0/1 nodes are available: 1 Insufficient cpu. Each requests 1 cpu; mrjob/demo/first holds 4."
    )


async def test_a_job_that_does_not_wait_has_no_diagnosis(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(lambda: w.scheduler.diagnosis("wc") and w.placed())
        api.end_pod("demo/wc-00000")
        await eventually(lambda: "demo/wc-00001" in w.placed())
        await eventually(lambda: w.scheduler.diagnosis("wc") is None)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "spec.schedulingGroup"),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, "spec.workloadRef"),
    ],
)
async def test_a_pod_with_a_constraint_that_is_not_supported_is_refused_by_name(api, eventually, spec, field):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.add(manifests.pod("p", **spec))
        await eventually(lambda: w.condition("demo/p"))
        await eventually(lambda: w.events("FailedScheduling"))
    assert w.condition("demo/p")["reason"] == "UnsupportedConstraint"
    assert f"does not support {field}" in w.condition("demo/p")["message"]
    assert not w.placed()


GPU = "example.com/gpu"
DEVICE_CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpus"}}


def with_gpu(name):
    pod = manifests.pod(name)
    pod["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    return pod


async def test_a_resource_that_only_a_device_class_offers_is_refused_until_a_node_has_it(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.add(with_gpu("p"))
        await eventually(lambda: w.condition("demo/p").get("reason") == "Unschedulable")
        api.add(DEVICE_CLASS | {"spec": {"extendedResourceName": GPU}})
        await eventually(lambda: w.condition("demo/p")["reason"] == "UnsupportedConstraint")
        message = w.condition("demo/p")["message"]
        api.add(manifests.node("n2", **{GPU: "1"}))
        await eventually(lambda: w.placed().get("demo/p") == "n2")
    assert f"DeviceClass gpus offers {GPU} by dynamic resource allocation" in message


async def test_a_cluster_that_does_not_serve_device_classes_is_scheduled_all_the_same(api, eventually):
    api.add(manifests.node("n1", **{GPU: "1"}))
    api.fail_next("list deviceclasses", status=404, times=100)
    async with scheduling(api, watched=False) as w:
        api.add(with_gpu("p"))
        await eventually(lambda: w.placed().get("demo/p") == "n1")


async def test_a_condition_is_written_once_and_an_event_too_while_nothing_changes(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api) as w:
        api.add(manifests.pod("p", cpu="2", nodeSelector={"zone": "a"}))
        await eventually(lambda: w.events("FailedScheduling"))
        for turn in "12345":  # each of these wakes a cycle that looks at the pod again
            api.change("nodes", "n1", {"metadata": {"labels": {"turn": turn}}})
            await eventually(lambda turn=turn: w.parts.nodes.objects.get("n1").metadata.labels.get("turn") == turn)
            await eventually(w.at_rest)
    assert len(api.called("patch pods/status")) == 1
    assert len(w.events("FailedScheduling")) == 1


async def test_a_condition_that_could_not_be_written_is_written_later(api, eventually, monkeypatch):
    monkeypatch.setattr(pod_conditions, "MESSAGE_WINDOW_S", 0.1)
    api.add(manifests.node("n1", cpu="1"))
    api.fail_next("patch pods/status", status=500)
    async with scheduling(api) as w:
        api.add(manifests.pod("p", cpu="2"))
        await eventually(lambda: w.metric("boathouse_api_write_errors_total", operation="status", code="500"))
        api.change("nodes", "n1", {"metadata": {"labels": {"turn": "1"}}})
        await eventually(lambda: w.condition("demo/p"))
