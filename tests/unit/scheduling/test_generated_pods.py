"""The cases that kube-scheduler is compared on are about every rule, and the plain reference agrees on them."""

from __future__ import annotations

import collections
import dataclasses
import itertools

import msgspec
import numpy as np
import pytest

from boathouse.cluster import views, wire
from boathouse.scheduling import transforms
from boathouse.scheduling.pods import facts, ownership, translate
from boathouse.scheduling.volumes import book, rules
from boathouse_policies import framework, model, profiles
from tests.contract.predicates import generator, mutations
from tests.unit.policies.affinity import reference

NAMESPACE = model.NamespaceName(generator.NAMESPACE)
WORDS = {
    "cordon": "were unschedulable",
    "taints": "untolerated taint",
    "labels": "didn't match Pod's node affinity/selector",
    "ports": "didn't have free ports",
    "disks": "had no available disk",
    "cpu": "Insufficient cpu",
    "memory": "Insufficient memory",
    "storage": "Insufficient ephemeral-storage",
    "pods": "Too many pods",
    "extended": f"Insufficient {generator.GPU}",
    "hugepages": f"Insufficient {generator.HUGE}",
    "spread": "didn't match pod topology spread",
    "near": "didn't match pod affinity",
    "apart": "didn't match pod anti-affinity",
    "hermits": "didn't satisfy existing pods",
    "volume": "didn't match PersistentVolume's node affinity",
    "zone": "had no available volume zone",
    "attached": "exceed max volume count",
}
"""What each rule says of a node that it refuses, in the order of the rules."""


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


def volumes_of(case: generator.Case, pods: list[facts.PodFacts]) -> book.VolumeBook:
    """The volumes, as the volume controller leaves them, and those that pods mount."""
    known = {"csi_nodes": {one["metadata"]["name"]: msgspec.convert(one, views.CsiNodeView) for one in case.csi_nodes}}
    if case.claim is not None and case.volume is not None:
        name = case.claim["metadata"]["name"]
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": {views.BIND_COMPLETED: "yes"}}
        known["claims"] = {
            f"{NAMESPACE}/{name}": msgspec.convert({**case.claim, "metadata": metadata}, views.ClaimView)
        }
        known["volumes"] = {name: msgspec.convert(case.volume, views.VolumeView)}
    found = book.VolumeBook(dataclasses.replace(rules.Storage(), **known))
    for pod in pods:
        if pod.claims:
            found.mounts.replace(pod.id, None, (model.NodeName(pod.node_name), pod.claims))
    return found


def asked(case: generator.Case) -> tuple[framework.PendingClass, list[set[str]]]:
    """The class of the probe, and for each node what the first filter says that refuses it."""
    axis = model.Axis()
    ledger = framework.Ledger(axis)
    queue = framework.SchedulingQueue(axis, [model.Queue.of(model.QueueName("default"))])
    ledger.tallies.set_namespace(NAMESPACE, generator.NAMESPACE_LABELS)
    for node in case.nodes:
        ledger.set_node(translate.node(msgspec.convert(node, wire.NodeView)))
    pods = residents(case)
    for pod in pods:
        ledger.observe(ownership.of(pod))
    probe = probe_of(case)
    one = ownership.foreign_class(probe, shown=lambda _, value: value)
    job = model.Job(id=one.job, queue=model.QueueName("default"), submitted_s=0.0, namespace=NAMESPACE)
    queue.submit(job, [one], [model.Task(id=probe.id, task_class=one.id, pod_uid=model.PodUid("u"))])
    state = framework.CycleState(ledger.snapshot(0.0))
    classes = queue.sorted_classes()
    classes.declare(ledger.tallies)
    state.count_pods()
    profile = profiles.build("fair")
    profile = dataclasses.replace(profile, filters=(*profile.filters, volumes_of(case, pods)))
    pending = framework.PendingClass(classes.queued[0], profile, state)
    return pending, [_first(pending, profile, state, place) for place in range(len(case.nodes))]


def _first(
    pending: framework.PendingClass, profile: framework.Profile, state: framework.CycleState, place: int
) -> set[str]:
    among = np.arange(len(state.view.layout)) == place
    found = ({refusal.reason for refusal in one.refusals(pending, state, among)} for one in profile.filters)
    return next(filter(None, found), set())


def of_pods(pending: framework.PendingClass) -> list[str]:
    """For each node why other pods keep the probe away, whatever else does."""
    state = pending.state
    places = np.arange(len(state.view.layout))
    filters = [one for one in profiles.build("fair").filters if one.of_pods]
    found = ((refusal for one in filters for refusal in one.refusals(pending, state, places == i)) for i in places)
    return [next((refusal.reason for refusal in refusals), "") for refusals in found]


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


def concerned(case: generator.Case, pending: framework.PendingClass) -> set[str]:
    """The rules that the probe is about."""
    constraints, requested = pending.task_class.constraints, pending.task_class.resources
    judge = pending.state.judge(pending)
    extended = {name for name, amount in requested.extended if amount}
    found = {
        "labels": constraints.node_selector or constraints.affinity,
        "ports": any(port.port for port in constraints.host_ports),
        "disks": "disks" in case.features and any(not port.port for port in constraints.host_ports),
        "cpu": requested.cpu_milli,
        "memory": requested.memory_bytes,
        "storage": requested.ephemeral_storage_bytes,
        "extended": generator.GPU in extended,
        "hugepages": generator.HUGE in extended,
        "spread": constraints.spread,
        "near": constraints.pod_affinity,
        "apart": constraints.pod_anti_affinity,
        "hermits": judge is not None and judge.rules.forbidding,
        "attached": "attached" in case.features and constraints.claims,
    }
    always = {"cordon", "taints", "pods", "volume", "zone"} & case.features
    return always | {name for name, is_about in found.items() if is_about}


def test_generated_cases_are_about_every_rule_and_the_reference_agrees():
    numbers = itertools.count()
    features, reached, refused = collections.Counter(), collections.Counter(), collections.Counter()
    for case in itertools.chain.from_iterable(generator.cases(seed, numbers) for seed in generator.SEEDS):
        features.update(case.features)
        pending, reasons = asked(case)
        # The reference knows no node affinity and no operators of tolerations.
        if case.features & generator.OF_PODS and not case.features & {
            "affinity",
            "numbers",
            "fields",
            "taints",
            "cordon",
        }:
            assert of_pods(pending) == expected(case), case
        about = concerned(case, pending)
        for said in reasons:
            names = [name for name, words in WORDS.items() if any(words in reason for reason in said)]
            assert bool(names) == bool(said), said
            last = list(WORDS).index(names[-1]) if names else len(WORDS)
            reached.update([name for name in list(WORDS)[: last + 1] if name in about])
            refused.update([name for name in names if name in about])
    assert min(features[name] for name in generator.FEATURES) >= 100
    shares = {name: refused[name] / reached[name] for name in WORDS}
    assert all(0.2 <= share <= 0.8 for share in shares.values()), shares


def feasible(case: generator.Case) -> list[bool]:
    return [not reasons for reasons in asked(case)[1]]


@pytest.mark.parametrize("broken", mutations.BROKEN)
def test_a_predicate_that_is_left_out_changes_an_answer(monkeypatch, broken):
    about, *replaced = mutations.BROKEN[broken]
    cases = list(generator.cases(1, itertools.count(), mutations.CASES, about))
    right = list(map(feasible, cases))
    monkeypatch.setattr(*replaced)
    assert list(map(feasible, cases)) != right
