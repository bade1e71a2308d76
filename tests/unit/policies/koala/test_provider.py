"""Equipartition, and who is asked to give nodes back."""

import hypothesis
from hypothesis import strategies as st

from boathouse_policies.koala import Partition
from boathouse_policies.koala.provider import Claimant, reclaims, split
from tests.unit.policies.koala.states import cluster

SITES = ("a", "b", "c")


def claimant(name: str, *sites: str, **fields) -> Claimant:
    return Claimant(cluster=cluster(name=name, **fields), sites=frozenset(sites or SITES))


def totals(parts) -> dict[str, int]:
    return {name: sum(part.values()) for name, part in parts.items()}


def test_all_splits_the_idle_nodes_of_all_sites_and_per_site_those_of_each():
    idle, three = {"a": 4, "b": 4}, [claimant(name) for name in "xyz"]
    assert sorted(totals(split(idle, three, Partition.ALL)).values()) == [2, 3, 3]
    assert sorted(totals(split(idle, three, Partition.PER_SITE)).values()) == [2, 2, 4]


def test_what_does_not_divide_goes_to_whoever_has_grown_least_then_by_name():
    two = [claimant("x", transient=3), claimant("y", transient=1)]
    assert totals(split({"a": 3}, two, Partition.ALL)) == {"x": 1, "y": 2}
    assert totals(split({"a": 1}, [claimant("y"), claimant("x")], Partition.ALL)) == {"y": 0, "x": 1}


def test_growth_is_what_is_beyond_the_first_nodes_whatever_its_kind():
    two = [claimant("x", core=23, first_core=20), claimant("y", core=40, first_core=40)]
    assert totals(split({"a": 1}, two, Partition.ALL)) == {"x": 0, "y": 1}


def test_a_cluster_is_given_nodes_only_at_sites_that_it_may_use():
    two = [claimant("x", "a"), claimant("y", "a", "b")]
    assert split({"a": 2, "b": 2}, two, Partition.ALL) == {"x": {"a": 2}, "y": {"b": 2}}
    assert split({"a": 2, "b": 2}, two, Partition.PER_SITE) == {"x": {"a": 1}, "y": {"a": 1, "b": 2}}


claimants = st.lists(
    st.builds(
        lambda sites, transient: (sites, transient),
        st.frozensets(st.sampled_from(SITES)),
        st.integers(0, 9),
    ),
    max_size=6,
).map(
    lambda drawn: [
        Claimant(cluster=cluster(name=f"c{i}", transient=transient), sites=sites)
        for i, (sites, transient) in enumerate(drawn)
    ]
)
pools = st.dictionaries(st.sampled_from(SITES), st.integers(0, 25))


@hypothesis.given(idle=pools, among=claimants, partition=st.sampled_from(list(Partition)))
def test_the_parts_add_up_to_the_pool_that_somebody_may_use(idle, among, partition):
    parts = split(idle, among, partition)
    for site, count in idle.items():
        usable = any(site in one.sites for one in among)
        assert sum(part.get(site, 0) for part in parts.values()) == (count if usable else 0)
    assert all(set(parts[one.cluster.name]) <= one.sites for one in among)


@hypothesis.given(idle=pools, count=st.integers(1, 6))
def test_parts_of_clusters_that_may_go_anywhere_differ_by_one_at_most(idle, count):
    among = [claimant(f"c{i}") for i in range(count)]
    found = totals(split(idle, among, Partition.ALL)).values()
    assert max(found) - min(found) <= 1
    each = split(idle, among, Partition.PER_SITE).values()
    for site in idle:
        here = [part.get(site, 0) for part in each]
        assert max(here) - min(here) <= 1


@hypothesis.given(idle=pools, among=claimants, partition=st.sampled_from(list(Partition)))
def test_the_order_of_clusters_and_sites_does_not_matter(idle, among, partition):
    turned = dict(reversed(idle.items()))
    assert split(idle, among, partition) == split(turned, among[::-1], partition)


def test_reclaims_take_from_those_with_the_most_transient_nodes_one_at_a_time():
    asked = reclaims(4, [cluster(name="x", transient=5), cluster(name="y", transient=3), cluster(name="z")])
    assert asked == {"x": 3, "y": 1}


def test_nodes_that_leave_already_are_not_asked_for_again():
    assert reclaims(4, [cluster(name="x", transient=5, leaving=3)]) == {"x": 1}
    assert reclaims(0, [cluster(name="x", transient=5)]) == {}


@hypothesis.given(needed=st.integers(0, 50), sizes=st.lists(st.integers(0, 12), max_size=5))
def test_no_cluster_is_asked_for_more_than_its_transient_nodes(needed, sizes):
    asked = reclaims(needed, [cluster(name=f"c{i}", transient=size) for i, size in enumerate(sizes)])
    assert all(asked.get(f"c{i}", 0) <= size for i, size in enumerate(sizes))
    assert sum(asked.values()) == min(needed, sum(sizes))
