"""Guards of accounting: what pods and nodes hold is counted right, whatever they say, and one object harms no other."""

from __future__ import annotations

from boathouse.cluster import errors, informer
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig, QueueConfig
from boathouse.scheduling import transforms
from boathouse.scheduling.pods import ownership, translate
from boathouse_policies import framework, model
from boathouse_policies.model import values
from tests.builders import manifests
from tests.builders.operators.schedulers import scheduling
from tests.wire import waiting
from tests.wire.guards import Guard

# Scenarios: each returns what broke


async def a_pod_of_too_many_cores_on_a_node(api, _tmp):
    api.add(manifests.node("n1"))
    try:
        async with scheduling(api) as w:
            api.add(manifests.pod("poison", scheduler="none", node="n1", cpu="10P"))
            api.add(manifests.pod("good"))
            await waiting.eventually(lambda: w.condition("demo/good") or w.placed().get("demo/good"), turns=5000)
            over = [key for key in w.placed() if key == "demo/good"]
            return over if await w.parts.consistency.compare() else [*over, "the ledger lacks a pod"]
    except ExceptionGroup as ended:
        return [str(ended)]


async def a_pod_that_cannot_be_decoded(api, _tmp):
    async with scheduling(api) as w:
        api.add(manifests.pod("poison", priority="high"))
        api.add(manifests.pod("good"))
        pods = w.parts.pods
        await waiting.eventually(lambda: pods.get("demo/good") or pods.stats.failures >= 2)
        return [] if pods.get("demo/good") else ["the watch of pods stands still"]


async def a_pod_on_a_node_whose_requests_are_not_known(api, _tmp):
    api.add(manifests.node("n1"))
    api.add(manifests.pod("poison", scheduler="none", node="n1", cpu="many"))
    async with scheduling(api) as w:
        api.add(manifests.pod("good"))
        await waiting.eventually(lambda: w.condition("demo/good") or w.placed().get("demo/good"))
        return [key for key in w.placed() if key == "demo/good"]


async def pods_that_claim_a_job_by_its_label(api, _tmp):
    api.add(manifests.node("n1"))
    labels = {names.LABEL_JOB_UID: "good"}
    for i in range(4):
        api.add(manifests.pod(f"forged{i}", scheduler="none", node="n1", labels=labels))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("good", 1)
        await waiting.eventually(lambda: len(w.placed()) == 5 and w.at_rest())
        charged = w.scheduler.state.ledger.snapshot(0.0).job_usage("good")[model.PODS]
        return [] if charged == 1 else [f"{charged} pods are charged to a job of one"]


async def pods_of_ours_on_nodes_that_do_not_exist(api, _tmp):
    api.add(manifests.node("n1", cpu="8"))
    for i in range(4):
        api.add(manifests.pod(f"ghost{i}", node="ghost", cpu="1"))
    config = OperatorConfig(queues=[QueueConfig(name="default", limits={"cpu": "4"})])
    async with scheduling(api, config=config, pending_ahead=0) as w:
        w.submit("good", 4)
        await waiting.eventually(lambda: w.scheduler.diagnosis("good") or len(w.placed()) == 8)
        return [w.scheduler.diagnosis("good").message] if len(w.placed()) < 8 else []


async def a_pod_with_large_annotations(api, _tmp):
    notes = {f"example.com/{i}": "x" * 1024 for i in range(200)}
    async with scheduling(api) as w:
        api.add(manifests.pod("large", scheduler="none", annotations=notes))
        await waiting.eventually(lambda: w.parts.pods.get("demo/large"))
        return list(w.parts.pods.get("demo/large").metadata.annotations)


# Guards, and how each is broken


def without_a_largest_amount(patch):
    for module in (model, values):
        patch.setattr(module, "LARGEST", 1 << 100)


def without_stand_ins(patch):
    def refuse(*_):
        raise errors.DecodeError("not a pod")

    patch.setattr(informer.Reflector, "_stand_in", refuse)


def with_nothing_counted_for_what_is_not_known(patch):
    patch.setattr(translate, "WHOLE_NODE", model.Resources())


def with_the_label_alone(patch):
    patch.setattr(ownership, "owning_job", lambda pod: pod.metadata.labels.get(names.LABEL_JOB_UID))


def with_ghosts_charged(patch):
    whole = framework.Ledger._charge

    def charge(self, entry, amounts, step):
        whole(self, entry, amounts, step)
        if entry.node not in self._nodes:
            self._charge_owner(entry, amounts, step)

    patch.setattr(framework.Ledger, "_charge", charge)


def with_whole_pods(patch):
    patch.setattr(transforms, "pods", lambda *_: lambda pod: pod)


GUARDS = {
    "pod-transform": Guard(a_pod_with_large_annotations, with_whole_pods),
    "saturation": Guard(a_pod_of_too_many_cores_on_a_node, without_a_largest_amount),
    "stand-ins": Guard(a_pod_that_cannot_be_decoded, without_stand_ins),
    "owner": Guard(pods_that_claim_a_job_by_its_label, with_the_label_alone),
    "ghost-nodes": Guard(pods_of_ours_on_nodes_that_do_not_exist, with_ghosts_charged),
    "whole-node": Guard(a_pod_on_a_node_whose_requests_are_not_known, with_nothing_counted_for_what_is_not_known),
}
