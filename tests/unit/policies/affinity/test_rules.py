"""Each rule of pod affinity, anti-affinity and topology spread by an example."""

from __future__ import annotations

import pytest

from boathouse_policies import framework, model
from boathouse_policies.framework import affinity
from tests.builders import core
from tests.builders.core_affinity import ABSENT, IN, AffinityShell, label, selector

from . import reference

A, EVERYTHING = label("app", "a"), model.Selector()


def zoned_nodes(*zones: str | None, **fields) -> list[model.Node]:
    """Nodes n0, n1 ... in these zones; None for a node without the label."""
    return [
        core.node(f"n{i}", labels={"host": f"n{i}"} | ({} if zone is None else {"zone": zone}), **fields)
        for i, zone in enumerate(zones)
    ]


def pod_term(key: str, of: model.Selector | None = A, **fields) -> model.PodTerm:
    return model.PodTerm(topology_key=key, pods=model.PodSet(selector=of, **{"namespaces": ("x",), **fields}))


def spread(key: str = "zone", of: model.Selector | None = A, max_skew: int = 1, **fields) -> model.Spread:
    return model.Spread(topology_key=key, max_skew=max_skew, selector=of, **fields)


def placed_pod(
    node: str, *anti: model.PodTerm, labels=(("app", "a"),), namespace: str = "x", **fields
) -> reference.Pod:
    return reference.Pod(namespace, dict(labels), model.Constraints(pod_anti_affinity=anti), node, **fields)


def zoned_shell(
    *zones: str | None, pods: tuple[reference.Pod, ...] = (), **namespaces: dict[str, str]
) -> AffinityShell:
    shell = AffinityShell(zoned_nodes(*zones), namespaces)
    for i, pod in enumerate(pods):
        shell.observe(f"p{i}", pod)
    return shell


def pods_near(*terms: model.PodTerm) -> model.Constraints:
    return model.Constraints(pod_affinity=terms)


def pods_apart(*terms: model.PodTerm) -> model.Constraints:
    return model.Constraints(pod_anti_affinity=terms)


def start_nodes(
    shell: AffinityShell, constraints: model.Constraints, count: int = 1, labels=(("app", "a"),), **fields
) -> list[str]:
    """The nodes of the pods that start."""
    shell.submit_pods("job", count, labels=labels, constraints=constraints, **fields)
    return shell.nodes_after_settling()


OTHER = (("app", "b"),)


@pytest.mark.parametrize(
    ("pods", "labels", "expected"),
    [
        pytest.param((), (("app", "a"),), 2, id="the-first-pod-that-matches-itself-and-the-next-near-it"),
        pytest.param((), OTHER, 0, id="nobody-matches"),
        pytest.param((placed_pod("gone"),), (("app", "a"),), 2, id="the-only-other-is-on-a-node-that-does-not-exist"),
        pytest.param((placed_pod("n2"),), (("app", "a"),), 0, id="another-is-there-on-a-node-without-room-in-its-zone"),
    ],
)
def test_the_first_pod_of_a_group_may_start_anywhere(pods, labels, expected):
    shell = zoned_shell("a", "a", "b", pods=pods)
    shell.set_node(core.node("n2", max_pods=1, labels=dict(shell.nodes["n2"].labels)))
    assert len(start_nodes(shell, pods_near(pod_term("zone")), 2, labels)) == expected


def test_affinity_counts_only_pods_that_match_all_terms():
    both = (("app", "a"), ("tier", "b"))
    shell = zoned_shell("a", "a", "b", pods=(placed_pod("n0"), placed_pod("n2", labels=both)))
    assert start_nodes(shell, pods_near(pod_term("zone"), pod_term("zone", label("tier", "b"))), labels=OTHER) == ["n2"]


def test_a_node_without_the_key_is_refused_for_affinity_and_spread_and_allowed_for_anti_affinity():
    assert start_nodes(zoned_shell(None), pods_near(pod_term("zone"))) == []
    assert start_nodes(zoned_shell(None), model.Constraints(spread=(spread(),))) == []
    assert start_nodes(zoned_shell(None, pods=(placed_pod("n0"),)), pods_apart(pod_term("zone"))) == ["n0"]


def test_a_pod_that_is_being_deleted_counts_for_affinity_and_not_for_spread():
    ending = placed_pod("n0", is_ending=True)
    assert start_nodes(zoned_shell("a", "b", pods=(ending,)), pods_near(pod_term("zone")), labels=OTHER) == ["n0"]
    assert start_nodes(zoned_shell("a", "b", pods=(ending,)), pods_apart(pod_term("zone"))) == ["n1"]
    even = model.Constraints(node_name=model.NodeName("n0"), spread=(spread(),))
    assert start_nodes(zoned_shell("a", "b", pods=(ending,)), even) == ["n0"]
    assert start_nodes(zoned_shell("a", "b", pods=(placed_pod("n0"),)), even) == []


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        pytest.param({"namespaces": ("y",)}, False, id="another-namespace"),
        pytest.param({"namespaces": ("x", "y")}, True, id="several-namespaces"),
        pytest.param({"namespaces": (), "namespace_selector": EVERYTHING}, True, id="all-namespaces"),
        pytest.param({"namespaces": (), "namespace_selector": label("env", "live")}, True, id="by-label"),
        pytest.param({"namespaces": (), "namespace_selector": label("env", "test")}, False, id="by-another-label"),
        pytest.param({"namespaces": ("x",), "namespace_selector": label("env", "test")}, True, id="by-name-or-label"),
        pytest.param({"of": None}, False, id="no-selector-selects-none"),
        pytest.param({"of": EVERYTHING}, True, id="an-empty-selector-selects-all"),
        pytest.param({"of": selector(("app", IN, "a", "c"), ("tier", ABSENT))}, True, id="requirements"),
    ],
)
def test_a_term_selects_pods_by_namespace_and_labels(fields, is_refused):
    forbidding = pod_term("host", **fields)
    assert start_nodes(
        zoned_shell("a", pods=(placed_pod("n0", forbidding, labels=OTHER),), x={"env": "live"}), model.UNCONSTRAINED
    ) == ([] if is_refused else ["n0"])
    assert start_nodes(
        zoned_shell("a", pods=(placed_pod("n0"),), x={"env": "live"}), pods_apart(forbidding), labels=OTHER
    ) == ([] if is_refused else ["n0"])


def test_another_label_of_a_namespace_changes_what_terms_select():
    shell = zoned_shell(
        "a", pods=(placed_pod("n0", pod_term("host", namespaces=(), namespace_selector=label("env", "live"))),), x={}
    )
    assert start_nodes(shell, model.UNCONSTRAINED) == ["n0"]
    shell.set_namespace("x", {"env": "live"})
    shell.submit_pods("next", labels={"app": "a"})
    assert shell.nodes_after_settling() == []
    shell.set_namespace("x", {})
    assert shell.nodes_after_settling() == ["n0"]


def test_another_label_of_a_namespace_changes_what_terms_select_that_are_by_name_and_by_label():
    shell = zoned_shell("a", "b", pods=(placed_pod("n1"),), x={})
    by_label = pod_term("host", namespaces=(), namespace_selector=label("env", "live"))
    assert start_nodes(shell, pods_near(pod_term("host"), by_label)) == []
    shell.set_namespace("x", {"env": "live"})
    assert shell.nodes_after_settling() == ["n1"]


def test_a_pod_forbids_others_next_to_it_from_the_moment_it_is_placed():
    shell = zoned_shell("a")
    forbidding = pods_apart(pod_term("host", label("app", "b")))
    shell.submit_pods("hermit", labels={"app": "a"}, constraints=forbidding, submitted_s=0.0)
    shell.submit_pods("plain", labels={"app": "b"}, submitted_s=1.0)
    assert len(shell.nodes_after_settling()) == 1


def test_pods_of_one_cycle_count_at_once():
    assert sorted(start_nodes(zoned_shell("a", "b", "c"), pods_apart(pod_term("host")), 5)) == ["n0", "n1", "n2"]
    nodes_of_zones = start_nodes(zoned_shell("a", "a", "b"), model.Constraints(spread=(spread(),)), 6)
    assert nodes_of_zones.count("n2") == 3


def test_a_gang_of_pods_that_exclude_each_other_starts_whole_or_not_at_all():
    assert start_nodes(zoned_shell("a", "b"), pods_apart(pod_term("host")), 3, gang_min=3) == []
    assert sorted(start_nodes(zoned_shell("a", "b", "c"), pods_apart(pod_term("host")), 3, gang_min=3)) == [
        "n0",
        "n1",
        "n2",
    ]


def test_with_fewer_domains_than_the_minimum_the_fewest_counts_as_none():
    full = (placed_pod("n0"), placed_pod("n1"))
    assert len(start_nodes(zoned_shell("a", "b", pods=full), model.Constraints(spread=(spread(),)))) == 1
    assert start_nodes(zoned_shell("a", "b", pods=full), model.Constraints(spread=(spread(min_domains=3),))) == []


def test_nodes_that_the_pod_cannot_use_count_for_spread_by_policy():
    tainted = core.node("n2", labels={"zone": "c", "disk": "hdd"}, taints=(model.Taint(key="t"),))
    for honors_taints, expected in ((True, 1), (False, 0)):
        shell = AffinityShell([*zoned_nodes("a", "b"), tainted], {})
        shell.observe("p0", placed_pod("n0"))
        shell.observe("p1", placed_pod("n1"))
        found = start_nodes(shell, model.Constraints(spread=(spread(honors_taints=honors_taints),)))
        assert len(found) == expected
    for honors_affinity, expected in ((True, 1), (False, 0)):
        shell = AffinityShell(
            [core.node(f"n{i}", labels={"zone": zone, "disk": "ssd"}) for i, zone in enumerate("ab")], {}
        )
        shell.set_node(core.node("n2", labels={"zone": "c", "disk": "hdd"}))
        shell.observe("p0", placed_pod("n0"))
        shell.observe("p1", placed_pod("n1"))
        constraints = model.Constraints(
            node_selector=(("disk", "ssd"),), spread=(spread(honors_affinity=honors_affinity),)
        )
        assert len(start_nodes(shell, constraints)) == expected


def test_a_topology_key_that_no_node_has_forbids_nothing_and_decides_nothing():
    shell = zoned_shell(
        "a", pods=(placed_pod("n0", *[pod_term(f"key-{i}") for i in range(3)], pod_term("host"), labels=OTHER),)
    )
    shell.submit_pods(labels={"app": "a"})
    state = framework.CycleState(shell.view())
    shell.queue.sorted_classes().declare(shell.ledger.tallies)
    state.count_pods()
    pending = framework.PendingClass(shell.queue.sorted_classes().queued[0], shell.profile, state)
    judge = state.judge(pending)
    assert judge is not None
    assert [counts.domains for counts in judge._forbidding] == [state.view.layout.domains("host")]
    assert start_nodes(
        zoned_shell("a", pods=(placed_pod("n0", pod_term("key"), labels=OTHER),)), model.UNCONSTRAINED
    ) == ["n0"]


def test_an_empty_selector_of_a_spread_constraint_counts_no_pod():
    even = model.Constraints(node_name=model.NodeName("n0"), spread=(spread(of=EVERYTHING),))
    assert start_nodes(zoned_shell("a", "b", pods=(placed_pod("n0"), placed_pod("n0"))), even) == ["n0"]


def test_a_pod_that_another_one_kept_away_starts_as_soon_as_that_one_ends_or_changes():
    shell = zoned_shell("a", pods=(placed_pod("n0", pod_term("host")),))
    assert start_nodes(shell, model.UNCONSTRAINED) == []
    shell.observe("p0", placed_pod("n0"))
    assert shell.nodes_after_settling() == ["n0"]


def test_a_pod_in_a_zone_starts_elsewhere_in_the_zone_when_another_ends_on_a_full_node():
    shell = zoned_shell("a", "a")
    shell.set_node(core.node("n0", max_pods=0, labels={"zone": "a"}))
    shell.observe("p0", placed_pod("n0"))
    assert start_nodes(shell, pods_apart(pod_term("zone"))) == []
    shell.end("ns/p0")
    assert shell.nodes_after_settling() == ["n1"]


def test_pods_that_a_later_class_brings_help_a_class_that_had_its_turn():
    shell = zoned_shell("a", "b")
    shell.submit_pods("follower", constraints=pods_near(pod_term("zone")), submitted_s=0.0)
    shell.submit_pods("leader", labels={"app": "a"}, submitted_s=1.0)
    first, second = shell.nodes_after_settling()
    assert first == second


@pytest.mark.parametrize(
    ("constraints", "pods", "message"),
    [
        (pods_near(pod_term("zone")), (placed_pod("gone"),), "node(s) didn't match pod affinity rules"),
        (pods_apart(pod_term("zone")), (placed_pod("n0"),), "node(s) didn't match pod anti-affinity rules"),
        (
            model.UNCONSTRAINED,
            (placed_pod("n0", pod_term("zone", label("app", "b"))),),
            "node(s) didn't satisfy existing pods anti-affinity rules",
        ),
        (
            model.Constraints(spread=(spread(of=label("app", "b"), min_domains=2, max_skew=1),)),
            (placed_pod("n0", labels=OTHER),),
            "node(s) didn't match pod topology spread constraints",
        ),
    ],
)
def test_the_diagnosis_has_kube_schedulers_words(constraints, pods, message):
    shell = zoned_shell("a", "a", None, pods=pods)
    shell.ledger.remove_node(model.NodeName("n2"))
    shell.submit_pods(labels={"app": "b"}, constraints=constraints)
    (diagnosis,) = shell.plan().diagnoses()
    assert diagnosis.message == f"0/2 nodes are available: 2 {message}."
    assert diagnosis.code is model.Code.UNSCHEDULABLE


def test_tallies_go_with_the_pods_and_classes_that_need_them():
    shell = zoned_shell("a", pods=(placed_pod("n0", pod_term("host"), labels=OTHER),))
    start_nodes(shell, pods_apart(pod_term("zone", label("app", "c"))), 2)
    tallies = shell.view().tallies
    assert tallies.is_needed
    for name in list(shell.pods):
        shell.end(name)
    shell.queue.withdraw(model.JobId("job"))
    shell.settle()
    shell.queue.sorted_classes().declare(shell.ledger.tallies)
    assert not tallies.is_needed
    assert not tallies._selecting._buckets
    assert not tallies._forbidding._buckets


def test_a_total_follows_its_tallies_for_as_long_as_it_is_used():
    every = affinity.Tallies()
    first, second = (every.of_term(pod_term(key)) for key in ("zone", "host"))
    first.add(model.NodeName("n0"), 1)
    total = every.total(frozenset([first, second]))
    assert every.total(frozenset([second, first])) is total
    second.add(model.NodeName("n0"), 2)
    first.add(model.NodeName("n1"), 1)
    first.add(model.NodeName("n0"), -1)
    assert total.by_node == {"n0": 2, "n1": 1}
    del total
    assert not first.totals


def test_classes_that_are_gone_do_not_fill_the_memory_of_a_count_that_never_changes(monkeypatch):
    monkeypatch.setattr(affinity, "_MOST_WAITING", 3)
    every = affinity.Tallies()
    tally = every.of_term(pod_term("zone"))
    for i in range(7):
        every.wait(tally, model.ClassId(f"c{i}"))
    assert len(tally.waiting) <= 3
    assert {*tally.waiting, *every.take_woken()} == {f"c{i}" for i in range(7)}


def test_a_class_that_waits_for_pods_is_woken_when_what_it_waits_for_is_counted_no_more():
    every, about = affinity.Tallies(), model.Constraints(pod_affinity=(pod_term("zone"),))
    every.declare([(model.NamespaceName("demo"), about)], by="a cycle of all")
    (tally,) = every._selecting.values()
    every.wait(tally, model.ClassId("c"))
    every.declare([], by="a cycle of another job alone")
    assert every.take_woken() == {"c"}
