"""Each rule of pod affinity, anti-affinity and topology spread by an example."""

from __future__ import annotations

import pytest

from boathouse_policies import framework, model
from boathouse_policies.framework.affinity import tallies
from tests.builders import core
from tests.builders.core_affinity import ABSENT, IN, Shell, label, selector

from . import reference

A, EVERYTHING = label("app", "a"), model.Selector()


def nodes(*zones: str | None, **fields) -> list[model.Node]:
    """Nodes n0, n1 ... in these zones; None for a node without the label."""
    return [
        core.node(f"n{i}", labels={"host": f"n{i}"} | ({} if zone is None else {"zone": zone}), **fields)
        for i, zone in enumerate(zones)
    ]


def term(key: str, of: model.Selector | None = A, **fields) -> model.PodTerm:
    return model.PodTerm(topology_key=key, pods=model.PodSet(selector=of, **{"namespaces": ("x",), **fields}))


def spread(key: str = "zone", of: model.Selector | None = A, max_skew: int = 1, **fields) -> model.Spread:
    return model.Spread(topology_key=key, max_skew=max_skew, selector=of, **fields)


def pod(node: str, *anti: model.PodTerm, labels=(("app", "a"),), namespace: str = "x", **fields) -> reference.Pod:
    return reference.Pod(namespace, dict(labels), model.Constraints(pod_anti_affinity=anti), node, **fields)


def shell_of(*zones: str | None, pods: tuple[reference.Pod, ...] = (), **namespaces: dict[str, str]) -> Shell:
    shell = Shell(nodes(*zones), namespaces)
    for i, each in enumerate(pods):
        shell.observe(f"p{i}", each)
    return shell


def near(*terms: model.PodTerm) -> model.Constraints:
    return model.Constraints(pod_affinity=terms)


def apart(*terms: model.PodTerm) -> model.Constraints:
    return model.Constraints(pod_anti_affinity=terms)


def placed(shell: Shell, constraints: model.Constraints, count: int = 1, labels=(("app", "a"),), **fields) -> list[str]:
    """The nodes of the pods that start."""
    shell.submit_pods("job", count, labels=labels, constraints=constraints, **fields)
    return shell.nodes_after_settling()


OTHER = (("app", "b"),)


@pytest.mark.parametrize(
    ("pods", "labels", "expected"),
    [
        pytest.param((), (("app", "a"),), 2, id="the-first-pod-that-matches-itself-and-the-next-near-it"),
        pytest.param((), OTHER, 0, id="nobody-matches"),
        pytest.param((pod("gone"),), (("app", "a"),), 2, id="the-only-other-is-on-a-node-that-does-not-exist"),
        pytest.param((pod("n2"),), (("app", "a"),), 0, id="another-is-there-on-a-node-without-room-in-its-zone"),
    ],
)
def test_the_first_pod_of_a_group_may_start_anywhere(pods, labels, expected):
    shell = shell_of("a", "a", "b", pods=pods)
    shell.set_node(core.node("n2", max_pods=1, labels=dict(shell.nodes["n2"].labels)))
    assert len(placed(shell, near(term("zone")), 2, labels)) == expected


def test_affinity_counts_only_pods_that_match_all_terms():
    both = (("app", "a"), ("tier", "b"))
    shell = shell_of("a", "a", "b", pods=(pod("n0"), pod("n2", labels=both)))
    assert placed(shell, near(term("zone"), term("zone", label("tier", "b"))), labels=OTHER) == ["n2"]


def test_a_node_without_the_key_is_refused_for_affinity_and_spread_and_allowed_for_anti_affinity():
    assert placed(shell_of(None), near(term("zone"))) == []
    assert placed(shell_of(None), model.Constraints(spread=(spread(),))) == []
    assert placed(shell_of(None, pods=(pod("n0"),)), apart(term("zone"))) == ["n0"]


def test_a_pod_that_is_being_deleted_counts_for_affinity_and_not_for_spread():
    ending = pod("n0", is_ending=True)
    assert placed(shell_of("a", "b", pods=(ending,)), near(term("zone")), labels=OTHER) == ["n0"]
    assert placed(shell_of("a", "b", pods=(ending,)), apart(term("zone"))) == ["n1"]
    even = model.Constraints(node_name=model.NodeName("n0"), spread=(spread(),))
    assert placed(shell_of("a", "b", pods=(ending,)), even) == ["n0"]
    assert placed(shell_of("a", "b", pods=(pod("n0"),)), even) == []


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
    forbidding = term("host", **fields)
    assert placed(
        shell_of("a", pods=(pod("n0", forbidding, labels=OTHER),), x={"env": "live"}), model.UNCONSTRAINED
    ) == ([] if is_refused else ["n0"])
    assert placed(shell_of("a", pods=(pod("n0"),), x={"env": "live"}), apart(forbidding), labels=OTHER) == (
        [] if is_refused else ["n0"]
    )


def test_another_label_of_a_namespace_changes_what_terms_select():
    shell = shell_of("a", pods=(pod("n0", term("host", namespaces=(), namespace_selector=label("env", "live"))),), x={})
    assert placed(shell, model.UNCONSTRAINED) == ["n0"]
    shell.set_namespace("x", {"env": "live"})
    shell.submit_pods("next", labels={"app": "a"})
    assert shell.nodes_after_settling() == []
    shell.set_namespace("x", {})
    assert shell.nodes_after_settling() == ["n0"]


def test_a_pod_forbids_others_next_to_it_from_the_moment_it_is_placed():
    shell = shell_of("a")
    forbidding = apart(term("host", label("app", "b")))
    shell.submit_pods("hermit", labels={"app": "a"}, constraints=forbidding, submitted_s=0.0)
    shell.submit_pods("plain", labels={"app": "b"}, submitted_s=1.0)
    assert len(shell.nodes_after_settling()) == 1


def test_pods_of_one_cycle_count_at_once():
    assert sorted(placed(shell_of("a", "b", "c"), apart(term("host")), 5)) == ["n0", "n1", "n2"]
    nodes_of_zones = placed(shell_of("a", "a", "b"), model.Constraints(spread=(spread(),)), 6)
    assert nodes_of_zones.count("n2") == 3


def test_a_gang_of_pods_that_exclude_each_other_starts_whole_or_not_at_all():
    assert placed(shell_of("a", "b"), apart(term("host")), 3, gang_min=3) == []
    assert sorted(placed(shell_of("a", "b", "c"), apart(term("host")), 3, gang_min=3)) == ["n0", "n1", "n2"]


def test_with_fewer_domains_than_the_minimum_the_fewest_counts_as_none():
    full = (pod("n0"), pod("n1"))
    assert len(placed(shell_of("a", "b", pods=full), model.Constraints(spread=(spread(),)))) == 1
    assert placed(shell_of("a", "b", pods=full), model.Constraints(spread=(spread(min_domains=3),))) == []


def test_nodes_that_the_pod_cannot_use_count_for_spread_by_policy():
    tainted = core.node("n2", labels={"zone": "c", "disk": "hdd"}, taints=(model.Taint(key="t"),))
    for honors_taints, expected in ((True, 1), (False, 0)):
        shell = Shell([*nodes("a", "b"), tainted], {})
        shell.observe("p0", pod("n0"))
        shell.observe("p1", pod("n1"))
        found = placed(shell, model.Constraints(spread=(spread(honors_taints=honors_taints),)))
        assert len(found) == expected
    for honors_affinity, expected in ((True, 1), (False, 0)):
        shell = Shell([core.node(f"n{i}", labels={"zone": zone, "disk": "ssd"}) for i, zone in enumerate("ab")], {})
        shell.set_node(core.node("n2", labels={"zone": "c", "disk": "hdd"}))
        shell.observe("p0", pod("n0"))
        shell.observe("p1", pod("n1"))
        constraints = model.Constraints(
            node_selector=(("disk", "ssd"),), spread=(spread(honors_affinity=honors_affinity),)
        )
        assert len(placed(shell, constraints)) == expected


def test_a_topology_key_that_no_node_has_forbids_nothing_and_decides_nothing():
    shell = shell_of("a", pods=(pod("n0", *[term(f"key-{i}") for i in range(3)], term("host"), labels=OTHER),))
    shell.submit_pods(labels={"app": "a"})
    state = framework.CycleState(shell.view())
    shell.ledger.declare(shell.queue.sorted_classes())
    state.count_pods()
    pending = framework.PendingClass(shell.queue.sorted_classes().queued[0], shell.profile, state)
    assert state.pod_counts is not None
    judge = state.pod_counts.judge(pending)
    assert judge is not None
    assert [counts.domains for counts in judge._forbidding] == [state.view.layout.domains("host")]
    assert placed(shell_of("a", pods=(pod("n0", term("key"), labels=OTHER),)), model.UNCONSTRAINED) == ["n0"]


def test_an_empty_selector_of_a_spread_constraint_counts_no_pod():
    even = model.Constraints(node_name=model.NodeName("n0"), spread=(spread(of=EVERYTHING),))
    assert placed(shell_of("a", "b", pods=(pod("n0"), pod("n0"))), even) == ["n0"]


def test_a_pod_that_another_one_kept_away_starts_as_soon_as_that_one_ends_or_changes():
    shell = shell_of("a", pods=(pod("n0", term("host")),))
    assert placed(shell, model.UNCONSTRAINED) == []
    shell.observe("p0", pod("n0"))
    assert shell.nodes_after_settling() == ["n0"]


def test_a_pod_in_a_zone_starts_elsewhere_in_the_zone_when_another_ends_on_a_full_node():
    shell = shell_of("a", "a")
    shell.set_node(core.node("n0", max_pods=0, labels={"zone": "a"}))
    shell.observe("p0", pod("n0"))
    assert placed(shell, apart(term("zone"))) == []
    shell.end("ns/p0")
    assert shell.nodes_after_settling() == ["n1"]


def test_pods_that_a_later_class_brings_help_a_class_that_had_its_turn():
    shell = shell_of("a", "b")
    shell.submit_pods("follower", constraints=near(term("zone")), submitted_s=0.0)
    shell.submit_pods("leader", labels={"app": "a"}, submitted_s=1.0)
    first, second = shell.nodes_after_settling()
    assert first == second


@pytest.mark.parametrize(
    ("constraints", "pods", "message"),
    [
        (near(term("zone")), (pod("gone"),), "node(s) didn't match pod affinity rules"),
        (apart(term("zone")), (pod("n0"),), "node(s) didn't match pod anti-affinity rules"),
        (
            model.UNCONSTRAINED,
            (pod("n0", term("zone", label("app", "b"))),),
            "node(s) didn't satisfy existing pods anti-affinity rules",
        ),
        (
            model.Constraints(spread=(spread(of=label("app", "b"), min_domains=2, max_skew=1),)),
            (pod("n0", labels=OTHER),),
            "node(s) didn't match pod topology spread constraints",
        ),
    ],
)
def test_the_diagnosis_has_kube_schedulers_words(constraints, pods, message):
    shell = shell_of("a", "a", None, pods=pods)
    shell.ledger.remove_node(model.NodeName("n2"))
    shell.submit_pods(labels={"app": "b"}, constraints=constraints)
    (diagnosis,) = shell.plan().diagnoses()
    assert diagnosis.message == f"0/2 nodes are available: 2 {message}."
    assert diagnosis.code is model.Code.UNSCHEDULABLE


def test_tallies_go_with_the_pods_and_classes_that_need_them():
    shell = shell_of("a", pods=(pod("n0", term("host"), labels=OTHER),))
    placed(shell, apart(term("zone", label("app", "c"))), 2)
    tallies = shell.view().tallies
    assert tallies.is_needed
    for name in list(shell.pods):
        shell.end(name)
    shell.queue.withdraw(model.JobId("job"))
    shell.settle()
    shell.ledger.declare(shell.queue.sorted_classes())
    assert not tallies.is_needed
    assert not tallies._selected_by._buckets
    assert not tallies._forbidden_by._buckets


def test_a_total_follows_its_tallies_for_as_long_as_it_is_used():
    every = tallies.Tallies()
    first, second = (every.of_term(term(key)) for key in ("zone", "host"))
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
    monkeypatch.setattr(tallies, "_MOST_WAITING", 3)
    every = tallies.Tallies()
    tally = every.of_term(term("zone"))
    for i in range(7):
        every.wait(tally, model.ClassId(f"c{i}"))
    assert len(tally.waiting) <= 3
    assert {*tally.waiting, *every.take_woken()} == {f"c{i}" for i in range(7)}
