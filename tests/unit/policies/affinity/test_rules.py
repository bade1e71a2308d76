"""Each rule of pod affinity, anti-affinity and topology spread by an example."""

from __future__ import annotations

import pytest

from boathouse_policies import framework, model
from boathouse_policies.framework.affinity import tallies
from tests.unit.policies import builders as make

from . import reference
from .drawing import ABSENT, IN, label, selector
from .test_reference import World

A, EVERYTHING = label("app", "a"), model.Selector()


def nodes(*zones: str | None, **fields) -> list[model.Node]:
    """Nodes n0, n1 ... in these zones; None for a node without the label."""
    return [
        make.node(f"n{i}", labels={"host": f"n{i}"} | ({} if zone is None else {"zone": zone}), **fields)
        for i, zone in enumerate(zones)
    ]


def term(key: str, of: model.Selector | None = A, **fields) -> model.PodTerm:
    return model.PodTerm(topology_key=key, pods=model.PodSet(selector=of, **{"namespaces": ("x",), **fields}))


def spread(key: str = "zone", of: model.Selector | None = A, max_skew: int = 1, **fields) -> model.Spread:
    return model.Spread(topology_key=key, max_skew=max_skew, selector=of, **fields)


def pod(node: str, *anti: model.PodTerm, labels=(("app", "a"),), namespace: str = "x", **fields) -> reference.Pod:
    return reference.Pod(namespace, dict(labels), model.Constraints(pod_anti_affinity=anti), node, **fields)


def world(*zones: str | None, pods: tuple[reference.Pod, ...] = (), **namespaces: dict[str, str]) -> World:
    found = World(nodes(*zones), namespaces)
    for i, each in enumerate(pods):
        found.show(f"p{i}", each)
    return found


def near(*terms: model.PodTerm) -> model.Constraints:
    return model.Constraints(pod_affinity=terms)


def apart(*terms: model.PodTerm) -> model.Constraints:
    return model.Constraints(pod_anti_affinity=terms)


def placed(
    subject: World, constraints: model.Constraints, count: int = 1, labels=(("app", "a"),), **fields
) -> list[str]:
    """The nodes of the pods that start."""
    subject.want("job", count, "x", labels=dict(labels), constraints=constraints, **fields)
    return [node for plan in subject.settle() for _, node in make.where(plan)]


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
    subject = world("a", "a", "b", pods=pods)
    subject.all_nodes[2] = make.node("n2", max_pods=1, labels=dict(subject.all_nodes[2].labels))
    subject.ledger.set_node(subject.all_nodes[2])
    assert len(placed(subject, near(term("zone")), 2, labels)) == expected


def test_affinity_counts_only_pods_that_match_all_terms():
    both = (("app", "a"), ("tier", "b"))
    subject = world("a", "a", "b", pods=(pod("n0"), pod("n2", labels=both)))
    assert placed(subject, near(term("zone"), term("zone", label("tier", "b"))), labels=OTHER) == ["n2"]


def test_a_node_without_the_key_is_refused_for_affinity_and_spread_and_allowed_for_anti_affinity():
    assert placed(world(None), near(term("zone"))) == []
    assert placed(world(None), model.Constraints(spread=(spread(),))) == []
    assert placed(world(None, pods=(pod("n0"),)), apart(term("zone"))) == ["n0"]


def test_a_pod_that_is_being_deleted_counts_for_affinity_and_not_for_spread():
    ending = pod("n0", is_ending=True)
    assert placed(world("a", "b", pods=(ending,)), near(term("zone")), labels=OTHER) == ["n0"]
    assert placed(world("a", "b", pods=(ending,)), apart(term("zone"))) == ["n1"]
    even = model.Constraints(node_name=model.NodeName("n0"), spread=(spread(),))
    assert placed(world("a", "b", pods=(ending,)), even) == ["n0"]
    assert placed(world("a", "b", pods=(pod("n0"),)), even) == []


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
    assert placed(world("a", pods=(pod("n0", forbidding, labels=OTHER),), x={"env": "live"}), model.UNCONSTRAINED) == (
        [] if is_refused else ["n0"]
    )
    assert placed(world("a", pods=(pod("n0"),), x={"env": "live"}), apart(forbidding), labels=OTHER) == (
        [] if is_refused else ["n0"]
    )


def test_another_label_of_a_namespace_changes_what_terms_select():
    subject = world("a", pods=(pod("n0", term("host", namespaces=(), namespace_selector=label("env", "live"))),), x={})
    assert placed(subject, model.UNCONSTRAINED) == ["n0"]
    subject.ledger.set_namespace("x", {"env": "live"})
    subject.namespaces["x"] = {"env": "live"}
    subject.want("next", 1, "x", labels={"app": "a"})
    assert not any(make.placements(plan) for plan in subject.settle())
    subject.ledger.set_namespace("x", {})
    subject.namespaces["x"] = {}
    assert [make.where(plan) for plan in subject.settle()] == [[("next/map-0", "n0")]]


def test_a_pod_forbids_others_next_to_it_from_the_moment_it_is_placed():
    subject = world("a")
    forbidding = apart(term("host", label("app", "b")))
    subject.want("hermit", 1, "x", labels={"app": "a"}, constraints=forbidding, submitted_s=0.0)
    subject.want("plain", 1, "x", labels={"app": "b"}, submitted_s=1.0)
    found = [each for plan in subject.settle() for each in make.where(plan)]
    assert len(found) == 1


def test_pods_of_one_cycle_count_at_once():
    assert sorted(placed(world("a", "b", "c"), apart(term("host")), 5)) == ["n0", "n1", "n2"]
    nodes_of_zones = placed(world("a", "a", "b"), model.Constraints(spread=(spread(),)), 6)
    assert nodes_of_zones.count("n2") == 3


def test_a_gang_of_pods_that_exclude_each_other_starts_whole_or_not_at_all():
    assert placed(world("a", "b"), apart(term("host")), 3, gang_min=3) == []
    assert sorted(placed(world("a", "b", "c"), apart(term("host")), 3, gang_min=3)) == ["n0", "n1", "n2"]


def test_with_fewer_domains_than_the_minimum_the_fewest_counts_as_none():
    full = (pod("n0"), pod("n1"))
    assert len(placed(world("a", "b", pods=full), model.Constraints(spread=(spread(),)))) == 1
    assert placed(world("a", "b", pods=full), model.Constraints(spread=(spread(min_domains=3),))) == []


def test_nodes_that_the_pod_cannot_use_count_for_spread_by_policy():
    tainted = make.node("n2", labels={"zone": "c", "disk": "hdd"}, taints=(model.Taint(key="t"),))
    for honors_taints, expected in ((True, 1), (False, 0)):
        subject = World([*nodes("a", "b"), tainted], {})
        subject.show("p0", pod("n0"))
        subject.show("p1", pod("n1"))
        found = placed(subject, model.Constraints(spread=(spread(honors_taints=honors_taints),)))
        assert len(found) == expected
    for honors_affinity, expected in ((True, 1), (False, 0)):
        subject = World([make.node(f"n{i}", labels={"zone": zone, "disk": "ssd"}) for i, zone in enumerate("ab")], {})
        subject.ledger.set_node(make.node("n2", labels={"zone": "c", "disk": "hdd"}))
        subject.all_nodes.append(make.node("n2", labels={"zone": "c", "disk": "hdd"}))
        subject.show("p0", pod("n0"))
        subject.show("p1", pod("n1"))
        constraints = model.Constraints(
            node_selector=(("disk", "ssd"),), spread=(spread(honors_affinity=honors_affinity),)
        )
        assert len(placed(subject, constraints)) == expected


def test_a_topology_key_that_no_node_has_forbids_nothing_and_decides_nothing():
    subject = world("a", pods=(pod("n0", *[term(f"key-{i}") for i in range(3)], term("host"), labels=OTHER),))
    subject.want("job", 1, "x", labels={"app": "a"})
    state = framework.CycleState(subject.view())
    subject.ledger.declare(subject.room.sorted_classes())
    state.count_pods()
    pending = framework.PendingClass(subject.room.sorted_classes().queued[0], subject.profile, state)
    assert state.pod_counts is not None
    judge = state.pod_counts.judge(pending)
    assert judge is not None
    assert [counts.domains for counts in judge._forbidding] == [state.view.layout.domains("host")]
    assert placed(world("a", pods=(pod("n0", term("key"), labels=OTHER),)), model.UNCONSTRAINED) == ["n0"]


def test_an_empty_selector_of_a_spread_constraint_counts_no_pod():
    even = model.Constraints(node_name=model.NodeName("n0"), spread=(spread(of=EVERYTHING),))
    assert placed(world("a", "b", pods=(pod("n0"), pod("n0"))), even) == ["n0"]


def test_a_pod_that_another_one_kept_away_starts_as_soon_as_that_one_ends_or_changes():
    subject = world("a", pods=(pod("n0", term("host")),))
    assert placed(subject, model.UNCONSTRAINED) == []
    subject.show("p0", pod("n0"))
    assert [make.where(plan) for plan in subject.settle()] == [[("job/map-0", "n0")]]


def test_a_pod_in_a_zone_starts_elsewhere_in_the_zone_when_another_ends_on_a_full_node():
    subject = world("a", "a")
    subject.ledger.set_node(make.node("n0", max_pods=0, labels={"zone": "a"}))
    subject.all_nodes[0] = make.node("n0", max_pods=0, labels={"zone": "a"})
    subject.show("p0", pod("n0"))
    assert placed(subject, apart(term("zone"))) == []
    subject.end("ns/p0")
    assert [make.where(plan) for plan in subject.settle()] == [[("job/map-0", "n1")]]


def test_pods_that_a_later_class_brings_help_a_class_that_had_its_turn():
    subject = world("a", "b")
    subject.want("follower", 1, "x", labels={}, constraints=near(term("zone")), submitted_s=0.0)
    subject.want("leader", 1, "x", labels={"app": "a"}, submitted_s=1.0)
    found = [each for plan in subject.settle() for each in make.where(plan)]
    assert {node for _, node in found} == {found[0][1]}
    assert len(found) == 2


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
    subject = world("a", "a", None, pods=pods)
    subject.ledger.remove_node(model.NodeName("n2"))
    subject.want("job", 1, "x", labels={"app": "b"}, constraints=constraints)
    (diagnosis,) = subject.plan().diagnoses()
    assert diagnosis.message == f"0/2 nodes are available: 2 {message}."
    assert diagnosis.code is model.Code.UNSCHEDULABLE


def test_tallies_go_with_the_pods_and_classes_that_need_them():
    subject = world("a", pods=(pod("n0", term("host"), labels=OTHER),))
    placed(subject, apart(term("zone", label("app", "c"))), 2)
    tallies = subject.view().tallies
    assert tallies.is_needed
    for name in list(subject.pods):
        subject.end(name)
    subject.room.withdraw(model.JobId("job"))
    subject.settle()
    subject.ledger.declare(subject.room.sorted_classes())
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
