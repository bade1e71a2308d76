"""Poison: what one object holds keeps no other from being scheduled, and ends nothing."""

from __future__ import annotations

import pytest

from boathouse.cluster import boundary, retries
from boathouse.scheduling import decider
from boathouse_policies import framework, model
from tests.builders import manifests
from tests.builders.operators.schedulers import scheduling

ODD_AMOUNTS = ["10P", "9223372036854775807Ei", "1e999999999", "9" * 5000, "1e-999999999", "-5"]


def affinity(operator: str, *values: str) -> dict:
    expression = {"key": "zone", "operator": operator, "values": list(values)}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def extended(**requests: str) -> list[dict]:
    return [{"name": "c", "resources": {"requests": requests}}]


UNTRANSLATABLE = {
    "operator": {"affinity": affinity("Near", "a")},
    "toleration": {"tolerations": [{"key": "a", "operator": "Roughly"}]},
    "effect": {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSleep"}]},
    "amount": {"containers": extended(cpu="many")},
    "resources": {"containers": extended(**{f"example.com/r{i}": "1" for i in range(65)})},
    "shape": {"priority": "high"},
}


@pytest.mark.parametrize("amount", ODD_AMOUNTS)
async def test_an_odd_amount_keeps_no_other_pod_from_its_node(api, eventually, amount):
    api.add(manifests.node("n1"))
    api.add(manifests.pod("early", cpu=amount, memory=amount))
    async with scheduling(api) as w:
        api.add(manifests.pod("late", cpu=amount, memory=amount))
        api.add(manifests.pod("good", namespace="other", cpu="1"))
        await eventually(lambda: "other/good" in w.placed() and w.at_rest())
        assert not w.fatal
        assert await w.parts.consistency.compare()


async def test_a_node_is_as_free_as_before_when_a_pod_of_too_many_cores_on_it_is_gone(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    async with scheduling(api) as w:
        for i in range(20):
            api.add(manifests.pod(f"poison{i}", scheduler="none", node="n1", cpu="10P", memory="7Ei"))
        api.add(manifests.pod("good", cpu="4"))
        await eventually(lambda: w.condition("demo/good"))
        assert await w.parts.consistency.compare()
        for i in range(20):
            api.remove("pods", f"demo/poison{i}")
        await eventually(lambda: "demo/good" in w.placed())
        assert w.scheduler.state.ledger.free("n1")[model.CPU] == 0


@pytest.mark.parametrize("spec", UNTRANSLATABLE.values(), ids=UNTRANSLATABLE)
async def test_a_pod_that_cannot_be_represented_is_set_aside_and_says_so(api, eventually, spec):
    api.add(manifests.node("n1"))
    api.add(manifests.pod("listed", **spec))
    async with scheduling(api) as w:
        api.add(manifests.pod("watched", **spec))
        api.add(manifests.pod("good"))
        await eventually(lambda: "demo/good" in w.placed() and w.condition("demo/watched"))
        assert set(w.placed()) == {"demo/good"}
        assert w.condition("demo/listed")["reason"] == w.condition("demo/watched")["reason"] == "SetAside"
        await eventually(lambda: len({event["regarding"]["name"] for event in w.events("SetAside")}) == 2)
        assert not w.fatal
        assert await w.parts.consistency.compare()


@pytest.mark.parametrize("spec", [UNTRANSLATABLE["shape"], UNTRANSLATABLE["amount"]])
async def test_the_node_of_a_pod_that_cannot_be_counted_is_full_until_it_is_deleted(api, eventually, spec):
    api.add(manifests.node("n1"))
    api.add(manifests.pod("poison", scheduler="none", node="n1", **spec))
    async with scheduling(api) as w:
        api.add(manifests.pod("good"))
        await eventually(lambda: w.condition("demo/good"))
        assert await w.parts.consistency.compare()
        api.remove("pods", "demo/poison")
        await eventually(lambda: "demo/good" in w.placed())


MANY = {f"example.com/r{i}": "1" for i in range(65)}
GPU = "nvidia.com/gpu"


async def test_a_small_pod_with_invented_resources_does_not_fill_its_node(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    api.add(manifests.pod("small", scheduler="none", node="n1", containers=extended(cpu="1", **MANY)))
    async with scheduling(api) as w:
        api.add(manifests.pod("good", cpu="3"))
        await eventually(lambda: "demo/good" in w.placed())
        assert w.scheduler.state.ledger.free("n1")[model.CPU] == 0
        assert await w.parts.consistency.compare()


async def test_of_very_many_resources_of_a_pod_those_count_that_nodes_have(api, eventually):
    node = manifests.node("n1", cpu="4")
    node["status"]["allocatable"][GPU] = "2"
    api.add(node)
    api.add(manifests.pod("small", scheduler="none", node="n1", containers=extended(**MANY, **{GPU: "1"})))
    async with scheduling(api) as w:
        for name in ("a", "b"):
            api.add(manifests.pod(name, containers=extended(**{GPU: "1"})))
        await eventually(lambda: len(w.placed()) == 2 and w.at_rest())
        assert len(w.waiting()) == 1
        assert await w.parts.consistency.compare()


async def test_an_answer_about_a_pod_counts_as_the_watch_does(api, eventually):
    api.add(manifests.node("n1"))
    ports = [{"containerPort": 1, "hostPort": i} for i in range(1, 101)]
    containers = [{"name": "c", "ports": ports}]
    api.add(manifests.pod("large", scheduler="none", node="n1", containers=containers))
    async with scheduling(api) as w:
        await eventually(lambda: "demo/large" in w.scheduler.state.ledger)
        pod = await w.scheduler.state.writer.read(model.TaskId("demo/large"))
        row = w.scheduler.state.pods.get("demo/large")
        w.scheduler.intake._answered(row, pod)
        assert await w.parts.consistency.compare()
        assert not w.fatal


@pytest.mark.parametrize(
    "status",
    [
        {"allocatable": {"cpu": "lots", "pods": "110"}},
        {"allocatable": {"cpu": "10P", "memory": "9223372036854775807Ei", "pods": "1e18"}},
        {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **{f"x.io/{i}": "1" for i in range(500)}}},
        {"allocatable": ["cpu"]},
    ],
)
async def test_a_node_of_a_hostile_status_ends_nothing(api, eventually, status):
    api.add(manifests.node("n1"))
    api.add(manifests.node("bad") | {"status": status})
    async with scheduling(api) as w:
        api.change("nodes", "bad", {"metadata": {"labels": {"again": "yes"}}})
        for name in ("a", "b"):
            api.add(manifests.pod(name, nodeSelector={"kubernetes.io/hostname": "n1"}))
        await eventually(lambda: len(w.placed()) == 2)
        assert not w.fatal
        assert await w.parts.consistency.compare()


async def test_a_node_with_a_taint_of_an_unknown_effect_takes_nothing(api, eventually):
    api.add(manifests.node("bad", taints=[{"key": "a", "effect": "NoSleep"}]))
    async with scheduling(api) as w:
        api.add(manifests.pod("good"))
        await eventually(lambda: w.condition("demo/good"))
        assert w.metric("boathouse_objects_set_aside_total", kind="Node", reason="TranslationFailed") == 1
        assert await w.parts.consistency.compare()


async def test_invented_resources_do_not_make_the_columns_longer(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        for i in range(100):
            api.add(manifests.pod(f"p{i}", scheduler="none", node="n1", containers=extended(**{f"x.io/r{i}": "1"})))
        api.add(manifests.pod("gpu", scheduler="none", node="n1", containers=extended(**{"x.io/gpu": "1"})))
        api.add(manifests.pod("good"))
        await eventually(lambda: "demo/good" in w.placed())
        width = len(w.scheduler.state.ledger.free("n1"))
        assert width < 4 + 10
        api.change("nodes", "n1", {"status": {"allocatable": {"x.io/gpu": "1"}}})
        api.add(manifests.pod("second", containers=extended(**{"x.io/gpu": "1"})))
        await eventually(lambda: w.condition("demo/second"))
        api.remove("pods", "demo/gpu")
        await eventually(lambda: "demo/second" in w.placed())


async def test_a_job_whose_decision_cannot_be_carried_out_is_set_aside(api, eventually, monkeypatch):
    whole = framework.Ledger.assume

    def assume(self, placement):
        if placement.job.id == "poison":
            raise RuntimeError("no such thing")
        whole(self, placement)

    monkeypatch.setattr(framework.Ledger, "assume", assume)
    api.add(manifests.node("n1"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("poison", 1)
        w.submit("good", 1)
        await eventually(lambda: len(w.placed()) == 1)
        assert w.scheduler.diagnosis("poison").reason == "SetAside"


async def test_a_job_with_which_the_cycle_fails_is_set_aside_and_the_others_go_on(api, eventually, monkeypatch):
    whole = framework.run_cycle

    def run_cycle(room, profile, view):
        if room.classes_of("poison"):
            raise RuntimeError("no such thing")
        return whole(room, profile, view)

    monkeypatch.setattr(framework, "run_cycle", run_cycle)
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("poison", 2)
        w.submit("good", 2)
        await eventually(lambda: len(w.placed()) == 2)
        assert w.scheduler.diagnosis("poison").reason == "SetAside"
        assert w.metric("boathouse_objects_set_aside_total", kind="MRJob", reason=boundary.Reason.SCHEDULING) == 1
        w.scheduler.withdraw("poison")
        assert w.scheduler.diagnosis("poison") is None


async def test_a_cycle_that_fails_with_no_job_alone_is_run_again_and_reported(api, eventually, monkeypatch):
    whole, failures = framework.run_cycle, []

    def run_cycle(room, profile, view):
        if room.classes_of("a") and room.classes_of("b") and len(failures) < 3:
            failures.append(view)
            raise RuntimeError("no such thing")
        return whole(room, profile, view)

    monkeypatch.setattr(framework, "run_cycle", run_cycle)
    retries.FAILURES["scheduling"] = 0
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("a", 2)
        w.submit("b", 2)
        await eventually(lambda: len(w.placed()) == 4)
        assert len(failures) == 3
        assert w.metric("boathouse_loop_failures_total", loop="scheduling") == 3
        assert w.scheduler.diagnosis("a") is None
        assert not w.fatal


async def test_what_was_decided_is_written_though_the_rest_of_the_round_fails(api, eventually, monkeypatch):
    whole, failures = decider.Decider._update_conditions, []

    def update(self):
        if not failures:
            failures.append(self)
            raise RuntimeError("no such thing")
        whole(self)

    monkeypatch.setattr(decider.Decider, "_update_conditions", update)
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("wc", 2)
        await eventually(lambda: failures and len(w.placed()) == 2)
        assert not w.fatal
