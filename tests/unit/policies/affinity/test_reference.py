"""Pod affinity, anti-affinity and topology spread are those of a plain reference, for every course of events."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
from hypothesis import given, settings, strategies as st

from boathouse_policies import framework
from tests.builders import core, core_affinity
from tests.builders.core_plain import plain_rankings


@settings(max_examples=70, deadline=None)
@given(st.data())
def test_each_node_is_refused_for_the_reason_of_the_reference(data):
    shell = core_affinity.drawn_shell(data)
    core_affinity.submit_drawn(shell, data, "job", most=1)
    view = shell.view()
    state = framework.CycleState(view)
    classes = shell.queue.sorted_classes()
    classes.declare(view.tallies)
    state.count_pods()
    (queued,) = classes.queued
    pending = framework.PendingClass(queued, shell.profile, state)
    pod = core_affinity.pod_of(queued.task_class, queued.job)
    for place, node in enumerate(view.nodes):
        among = np.arange(len(view.nodes)) == place
        found = [
            refusal.reason
            for question in shell.profile.filters
            if question.of_pods
            for refusal in question.refusals(pending, state, among)
        ]
        assert (found[0] if found else "") == shell.cluster.refusal(pod, node)


@settings(max_examples=70, deadline=None)
@given(st.data())
def test_every_placement_is_allowed_when_it_is_made_and_nothing_is_left_that_could_start(data):
    shell = core_affinity.drawn_shell(data)
    for i in range(data.draw(st.integers(1, 4))):
        core_affinity.submit_drawn(shell, data, f"j{i}")
    shell.settle()
    shell.check_nothing_is_left_that_could_start()
    rng = random.Random(data.draw(st.integers(0, 99)))
    for i in range(data.draw(st.integers(0, 6))):
        apply_change(shell, rng, data, i)
        shell.settle()
        shell.check_nothing_is_left_that_could_start()


def apply_change(shell: core_affinity.AffinityShell, rng: random.Random, data: st.DataObject, i: int) -> None:
    """A pod is created, ends or changes, or a namespace's labels do."""
    names = sorted(shell.pods)
    match rng.choice(("create", "end", "end", "label", "delete", "namespace")):
        case "create":
            shell.observe(f"q{i}", data.draw(core_affinity.drawn_pods(st.sampled_from([*shell.nodes]))))
        case "end" if names:
            shell.end(rng.choice(names))
        case "label" | "delete" as how if names:
            name = rng.choice(names)
            more = {"is_ending": True} if how == "delete" else {"labels": data.draw(core_affinity.labels)}
            shell.observe(name.removeprefix("ns/"), dataclasses.replace(shell.pods[name], **more))
        case "namespace":
            shell.set_namespace("x", data.draw(core_affinity.labels))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_gang_starts_where_each_of_its_pods_is_allowed_beside_the_others(data):
    shell = core_affinity.drawn_shell(data)
    core_affinity.submit_drawn(shell, data, "gang", count=data.draw(st.integers(2, 4)), namespace="x", gang_min=2)
    core_affinity.submit_drawn(shell, data, "other", count=2, namespace="x")
    shell.settle()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_many_nodes_and_few_nodes_are_ranked_alike(data):
    shell = core_affinity.drawn_shell(data)
    for i in range(3):
        core_affinity.submit_drawn(shell, data, f"j{i}", most=3)
    quick = core.where(shell.plan())
    offered = core.where(shell.plan(offered=list(shell.nodes)))
    with plain_rankings():
        assert core.where(shell.plan()) == quick == offered
