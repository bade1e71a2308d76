"""Equipartition, and who is asked to give nodes back."""

import hypothesis
from hypothesis import strategies as st

from boathouse_policies.koala import Cluster, Partition, controller
from boathouse_policies.koala.controller import Pool, reclaims, without
from tests.builders.core_koala import cluster_state

SITES = ("a", "b", "c")


def users(*clusters: Cluster):
    """Clusters that may have nodes at all sites."""
    return dict.fromkeys(clusters, SITES)


def pools_of(idle, sites):
    """The pools where a cluster may use either all or none of a site."""
    users = {site: frozenset(cluster.name for cluster, usable in sites.items() if site in usable) for site in idle}
    return [Pool(site=site, nodes=nodes, users=users[site]) for site, nodes in idle.items()]


def split_pools(idle, sites, partition):
    return controller.split(pools_of(idle, sites), sites, partition)


def totals(parts) -> dict[str, int]:
    return {name: sum(part.values()) for name, part in parts.items()}


def test_all_splits_the_idle_nodes_of_all_sites_and_per_site_those_of_each():
    idle, three = {"a": 4, "b": 4}, users(*(cluster_state(name=name) for name in "xyz"))
    assert sorted(totals(split_pools(idle, three, Partition.ALL)).values()) == [2, 3, 3]
    assert sorted(totals(split_pools(idle, three, Partition.PER_SITE)).values()) == [2, 2, 4]


def test_the_remainder_is_given_to_the_cluster_that_has_grown_least_then_by_name():
    two = users(cluster_state(name="x", transient=3), cluster_state(name="y", transient=1))
    assert totals(split_pools({"a": 3}, two, Partition.ALL)) == {"x": 1, "y": 2}
    equal = users(cluster_state(name="y"), cluster_state(name="x"))
    assert totals(split_pools({"a": 1}, equal, Partition.ALL)) == {"y": 0, "x": 1}


def test_growth_is_what_is_beyond_the_first_nodes_whatever_its_kind():
    two = users(cluster_state(name="x", core=23, first_core_nodes=20), cluster_state(name="y", core=40))
    assert totals(split_pools({"a": 1}, two, Partition.ALL)) == {"x": 0, "y": 1}


def test_a_cluster_is_given_nodes_only_at_sites_that_it_may_use():
    two = {cluster_state(name="x"): {"a"}, cluster_state(name="y"): {"a", "b"}}
    assert split_pools({"a": 2, "b": 2}, two, Partition.ALL) == {"x": {"a": 2}, "y": {"b": 2}}
    assert split_pools({"a": 2, "b": 2}, two, Partition.PER_SITE) == {"x": {"a": 1}, "y": {"a": 1, "b": 2}}


def test_weights_are_the_ratio_of_parts():
    two = users(cluster_state(name="x", weight=2), cluster_state(name="y"))
    assert totals(split_pools({"a": 6}, two, Partition.ALL)) == {"x": 4, "y": 2}
    assert totals(split_pools({"a": 3, "b": 3}, two, Partition.PER_SITE)) == {"x": 4, "y": 2}


def test_growth_is_compared_by_weight_too():
    two = users(cluster_state(name="x", weight=3, transient=6), cluster_state(name="y", transient=3))
    assert totals(split_pools({"a": 1}, two, Partition.ALL)) == {"x": 1, "y": 0}


def test_of_fewer_nodes_than_the_weights_add_up_to_those_with_less_get_their_weight_first():
    two = users(cluster_state(name="x", weight=2, transient=1), cluster_state(name="y", transient=2))
    assert totals(split_pools({"a": 2}, two, Partition.ALL)) == {"x": 2, "y": 0}
    assert totals(split_pools({"a": 3}, two, Partition.ALL)) == {"x": 2, "y": 1}


def test_a_cluster_at_its_maximum_leaves_its_part_to_others():
    two = users(cluster_state(name="x", most_nodes=21), cluster_state(name="y"))
    assert totals(split_pools({"a": 6}, two, Partition.ALL)) == {"x": 1, "y": 5}


def test_a_node_without_room_for_the_worker_of_a_cluster_is_given_to_another():
    first, other = cluster_state(name="x"), cluster_state(name="y")
    idle = [
        Pool(site="a", nodes=3, users=frozenset({first.name, other.name})),
        Pool(site="a", nodes=2, users=frozenset({other.name})),
    ]
    assert totals(controller.split(idle, [first, other], Partition.PER_SITE)) == {"x": 3, "y": 2}


def test_nodes_are_kept_for_submissions_of_the_largest_pool_first():
    idle = pools_of({"a": 2, "b": 5}, users(cluster_state(name="x")))
    assert sorted((pool.site, pool.nodes) for pool in without(idle, 4)) == [("a", 1), ("b", 2)]
    assert [pool.nodes for pool in without(idle, 99)] == [0, 0]


shapes = st.tuples(st.frozensets(st.sampled_from(SITES)), st.integers(0, 9))
several_users = st.lists(shapes, max_size=6).map(
    lambda drawn: {
        cluster_state(name=f"c{i}", transient=transient): sites for i, (sites, transient) in enumerate(drawn)
    }
)
pools = st.dictionaries(st.sampled_from(SITES), st.integers(0, 25))


@hypothesis.given(idle=pools, among=several_users, partition=st.sampled_from(list(Partition)))
def test_the_parts_add_up_to_the_usable_pool(idle, among, partition):
    parts = split_pools(idle, among, partition)
    for site, count in idle.items():
        usable = any(site in sites for sites in among.values())
        assert sum(part.get(site, 0) for part in parts.values()) == (count if usable else 0)
    assert all(set(parts[user.name]) <= sites for user, sites in among.items())


@hypothesis.given(idle=pools, count=st.integers(1, 6))
def test_parts_of_clusters_that_may_go_anywhere_differ_by_one_at_most(idle, count):
    among = users(*(cluster_state(name=f"c{i}") for i in range(count)))
    found = totals(split_pools(idle, among, Partition.ALL)).values()
    assert max(found) - min(found) <= 1
    parts = split_pools(idle, among, Partition.PER_SITE).values()
    for site in idle:
        here = [part.get(site, 0) for part in parts]
        assert max(here) - min(here) <= 1


@hypothesis.given(idle=pools, among=several_users, partition=st.sampled_from(list(Partition)))
def test_the_order_of_clusters_and_sites_does_not_matter(idle, among, partition):
    turned = dict(reversed(idle.items()))
    assert split_pools(idle, among, partition) == split_pools(turned, dict(reversed(among.items())), partition)


def test_reclaims_take_from_those_with_the_most_transient_nodes_one_at_a_time():
    asked = reclaims(
        4, [cluster_state(name="x", transient=5), cluster_state(name="y", transient=3), cluster_state(name="z")]
    )
    assert asked == {"x": 3, "y": 1}


def test_reclaims_are_by_weight_and_leave_what_a_cluster_keeps_in_any_case():
    assert reclaims(3, [cluster_state(name="x", transient=4, weight=2), cluster_state(name="y", transient=4)]) == {
        "x": 1,
        "y": 2,
    }
    assert reclaims(9, [cluster_state(name="x", transient=5, least_transient_nodes=3)]) == {"x": 2}


@hypothesis.given(
    weights=st.lists(st.integers(1, 9), min_size=2, max_size=5), nodes=st.integers(0, 60), rounds=st.integers(1, 6)
)
def test_parts_by_weight_are_within_one_node_of_the_ratio(weights, nodes, rounds):
    among = users(*(cluster_state(name=f"c{i}", weight=weight) for i, weight in enumerate(weights)))
    found = list(totals(split_pools({"a": nodes * rounds}, among, Partition.ALL)).values())
    assert sum(found) == nodes * rounds
    assert max(n / w for n, w in zip(found, weights, strict=True)) <= min(
        (n + 1) / w for n, w in zip(found, weights, strict=True)
    ) + max(1 / w for w in weights)


def test_nodes_that_leave_already_are_not_asked_for_again():
    assert reclaims(4, [cluster_state(name="x", transient=5, leaving_nodes=3)]) == {"x": 1}
    assert reclaims(0, [cluster_state(name="x", transient=5)]) == {}


@hypothesis.given(needed=st.integers(0, 50), sizes=st.lists(st.integers(0, 12), max_size=5))
def test_no_cluster_is_asked_for_more_than_its_transient_nodes(needed, sizes):
    asked = reclaims(needed, [cluster_state(name=f"c{i}", transient=size) for i, size in enumerate(sizes)])
    assert all(asked.get(f"c{i}", 0) <= size for i, size in enumerate(sizes))
    assert sum(asked.values()) == min(needed, sum(sizes))
