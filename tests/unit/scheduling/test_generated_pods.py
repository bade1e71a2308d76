"""The cases that kube-scheduler is compared on are about every rule, and the plain reference agrees on them."""

from __future__ import annotations

import collections
import random

import msgspec
import numpy as np

from boathouse.cluster import wire
from boathouse.scheduling import jobs, transforms
from boathouse.scheduling.pods import facts, ownership, translate
from boathouse_policies import framework, model, profiles
from tests.contract.predicates import generator
from tests.unit.policies.affinity import reference

CASES = 2000
NAMESPACE = model.NamespaceName(generator.NAMESPACE)
PROFILE = profiles.build("fair")
KINDS = {
    "pod_affinity": "didn't match pod affinity",
    "pod_anti_affinity": "didn't match pod anti-affinity",
    "spread": "didn't match pod topology spread",
    "forbidden": "didn't satisfy existing pods",
}


def reduced(manifest, status, *, deleted=False) -> facts.PodFacts:
    """The pod as a watch would show it."""
    name = manifest["metadata"]["name"]
    metadata = {**manifest["metadata"], "namespace": NAMESPACE, "uid": name}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    whole = msgspec.convert({"metadata": metadata, "spec": manifest["spec"], "status": status}, wire.PodView)
    return transforms.pods("boathouse")(whole)


def residents(case: generator.Case) -> list[facts.PodFacts]:
    held = (one for one in case.held if one.status["phase"] not in {"Succeeded", "Failed"})
    return [reduced(one.manifest, one.status, deleted=one.deleted) for one in held]


def probe_of(case: generator.Case) -> facts.PodFacts:
    spec = {**case.probe["spec"], "schedulerName": "boathouse"}
    return reduced({"metadata": {**case.probe["metadata"], "name": "probe"}, "spec": spec}, {})


def answers(case: generator.Case) -> tuple[framework.PendingClass, list[str]]:
    """The class of the probe, and for each node why other pods keep it away."""
    axis = model.Axis()
    ledger = framework.Ledger(axis)
    queue = framework.SchedulingQueue(axis, [model.Queue.of(model.QueueName("default"))])
    ledger.set_namespace(NAMESPACE, generator.NAMESPACE_LABELS)
    for node in case.nodes:
        ledger.set_node(translate.node(msgspec.convert(node, wire.NodeView)))
    for pod in residents(case):
        ledger.observe(ownership.of(pod))
    probe = probe_of(case)
    one = jobs.foreign_class(probe, mentions=lambda _: True)
    job = model.Job(id=one.job, queue=model.QueueName("default"), submitted_s=0.0, namespace=NAMESPACE)
    queue.submit(job, [one], [model.Task(id=probe.id, task_class=one.id, pod_uid=model.PodUid("u"))])
    state = framework.CycleState(ledger.snapshot(0.0))
    classes = queue.sorted_classes()
    ledger.declare(classes)
    state.count_pods()
    pending = framework.PendingClass(classes.queued[0], PROFILE, state)
    return pending, [_first(pending, state, place) for place in range(len(case.nodes))]


def _first(pending: framework.PendingClass, state: framework.CycleState, place: int) -> str:
    among = np.arange(len(state.view.layout)) == place
    found = (one.refusals(pending, state, among) for one in PROFILE.filters if one.of_pods)
    return next((refusal.reason for refusals in found for refusal in refusals), "")


def expected(case: generator.Case) -> list[str]:
    nodes = sorted(
        (translate.node(msgspec.convert(one, wire.NodeView)) for one in case.nodes), key=lambda one: one.name
    )
    pods = [
        reference.Pod(
            namespace=NAMESPACE,
            labels=pod.labels,
            constraints=model.Constraints(pod_anti_affinity=pod.anti_affinity),
            node=pod.node_name,
            is_ending=pod.metadata.deletion_timestamp is not None,
        )
        for pod in residents(case)
    ]
    cluster = reference.Cluster(nodes, pods, {NAMESPACE: generator.NAMESPACE_LABELS})
    probe = probe_of(case)
    assert isinstance(probe.constraints, model.Constraints)
    return [cluster.refusal(reference.Pod(NAMESPACE, probe.labels, probe.constraints), node) for node in nodes]


def test_generated_cases_are_about_every_rule_and_the_reference_agrees():
    rng = random.Random(1)
    features: collections.Counter[str] = collections.Counter()
    asked: collections.Counter[str] = collections.Counter()
    refused: collections.Counter[str] = collections.Counter()
    for number in range(CASES):
        case = generator.case(rng, number)
        features.update(case.features)
        if not case.features & generator.OF_PODS:
            continue
        pending, found = answers(case)
        # The reference knows no node affinity and no operators of tolerations.
        if not case.features & {"affinity", "fields", "taints", "cordon"}:
            assert found == expected(case), case
        counts = pending.state.pod_counts
        judge = None if counts is None else counts.judge(pending)
        for kind, words in KINDS.items():
            about = judge.rules.forbidding if kind == "forbidden" and judge else ()
            if about or getattr(pending.task_class.constraints, kind, ()):
                asked[kind] += len(found)
                refused[kind] += sum(words in reason for reason in found)
    assert min(features[name] for name in generator.FEATURES) >= 100
    shares = {kind: refused[kind] / asked[kind] for kind in KINDS}
    assert all(0.2 <= share <= 0.8 for share in shares.values()), shares
