"""F, and how each policy answers offers and reclaims."""

import dataclasses
import math

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_policies.koala import Config, Kind, Policy, Reading
from boathouse_policies.koala.cluster import grower, load
from tests.builders.core_koala import NODE_SLOTS, cluster_state, drawn_clusters

CONFIG = Config()
WAITING, FREE = Reading.WAITING, Reading.FREE


def policy(name: Policy, **fields):
    return grower(name, Config(**fields))


GSP = policy(Policy.GSP)


# F


def test_f_counts_running_and_runnable_tasks_over_all_slots():
    assert load(cluster_state(160, waiting=160), WAITING) == 2.0
    assert load(cluster_state(40), WAITING) == 0.25


def test_the_other_reading_of_f_is_running_over_free_slots():
    assert load(cluster_state(96, waiting=500), FREE) == 96 / 64
    assert load(cluster_state(160), FREE) == math.inf


def test_nodes_on_their_way_count_as_free_slots():
    assert load(cluster_state(160, waiting=160, pending_nodes=20), WAITING) == 1.0
    assert load(cluster_state(160, pending_nodes=20), FREE) == 1.0


def test_an_idle_cluster_has_no_load_even_without_slots():
    assert load(cluster_state(0, slots=0), WAITING) == load(cluster_state(0, slots=0), FREE) == 0.0
    assert load(cluster_state(0, slots=0, waiting=1), WAITING) == math.inf


# GSP


def test_gsp_takes_at_most_s_plus_nodes_while_f_is_above_the_maximum():
    answer = GSP.offered(cluster_state(160, waiting=81), 20)
    assert (answer.nodes, answer.kind) == (5, Kind.TRANSIENT)
    assert GSP.offered(cluster_state(160, waiting=81), 3).nodes == 3


def test_gsp_declines_at_the_maximum_and_below_and_where_nothing_is_offered():
    assert GSP.offered(cluster_state(160, waiting=80), 20) is None
    assert GSP.offered(cluster_state(160, waiting=500), 0) is None


def test_gsp_gives_s_minus_nodes_back_below_the_minimum():
    assert GSP.unrequested(cluster_state(59, core=20, transient=10)).nodes == -2
    assert GSP.unrequested(cluster_state(60, core=20, transient=10)) is None


def test_gsp_gives_what_it_has_where_that_is_less_and_core_nodes_never():
    assert GSP.unrequested(cluster_state(0, transient=1)).nodes == -1
    assert GSP.unrequested(cluster_state(0, transient=0)) is None


def test_gsp_meets_a_reclaim_with_s_minus_nodes_unless_that_lifts_f_above_the_maximum():
    assert GSP.reclaimed(cluster_state(160, core=20, transient=10, waiting=100), 7).nodes == -2
    assert GSP.reclaimed(cluster_state(160, core=20, transient=10, waiting=100), 1).nodes == -1
    just = cluster_state(240, core=20, transient=10, waiting=28 * 12 - 240)  # 1.5 with two nodes fewer
    assert GSP.reclaimed(just, 2).nodes == -2
    assert GSP.reclaimed(dataclasses.replace(just, runnable_tasks=just.runnable_tasks + 1), 2) is None


def test_gsp_works_with_the_other_reading_of_f():
    free = policy(Policy.GSP, reading=FREE)
    assert free.offered(cluster_state(96), 5) is None
    assert free.offered(cluster_state(97), 5).nodes == 5
    assert free.unrequested(cluster_state(47, core=20, transient=10)).nodes == -2
    assert free.unrequested(cluster_state(48, core=20, transient=10)) is None


# Greedy and static


@pytest.mark.parametrize(("name", "kind"), [(Policy.GGP, Kind.TRANSIENT), (Policy.GGDP, Kind.CORE)])
def test_greedy_policies_take_every_offer_of_two_even_when_idle(name, kind):
    answer = policy(name).offered(cluster_state(0), 9)
    assert (answer.nodes, answer.kind) == (2, kind)
    assert policy(name).offered(cluster_state(0), 1).nodes == 1
    assert policy(name).offered(cluster_state(0), 0) is None


@pytest.mark.parametrize("name", [Policy.GGP, Policy.GGDP])
def test_greedy_policies_ignore_reclaims_and_take_nothing_once_the_workload_is_over(name):
    assert policy(name).reclaimed(cluster_state(0, transient=9), 9) is None
    assert policy(name).offered(cluster_state(0, workload_ended=1), 2) is None


def test_ggp_gives_all_transient_nodes_back_when_the_workload_is_over_and_not_before():
    assert policy(Policy.GGP).unrequested(cluster_state(0, transient=9)) is None
    assert policy(Policy.GGP).unrequested(cluster_state(0, transient=9, workload_ended=1)).nodes == -9


def test_ggdp_has_no_transient_nodes_to_give_back():
    assert policy(Policy.GGDP).unrequested(cluster_state(0, core=29, first_core_nodes=20, workload_ended=1)) is None


def test_a_static_cluster_declines_everything():
    static = policy(Policy.STATIC)
    state = cluster_state(160, waiting=999, transient=9)
    answers = [static.offered(state, 5), static.reclaimed(state, 5), static.unrequested(state)]
    assert answers == [None, None, None]
    assert static.most == 0


def test_offers_come_each_30_s_to_gsp_and_each_120_s_to_the_greedy():
    assert [(policy(name).every_s, policy(name).most) for name in (Policy.GSP, Policy.GGP, Policy.GGDP)] == [
        (30.0, 5),
        (120.0, 2),
        (120.0, 2),
    ]


# Properties

any_policy = st.sampled_from(list(Policy))
any_reading = st.sampled_from(list(Reading))


@hypothesis.given(state=drawn_clusters(), name=any_policy, reading=any_reading, nodes=st.integers(0, 30))
def test_no_answer_takes_more_than_was_offered_or_gives_a_core_node_back(state, name, reading, nodes):
    chosen = policy(name, reading=reading)
    offered, reclaimed, unrequested = (
        chosen.offered(state, nodes),
        chosen.reclaimed(state, nodes),
        chosen.unrequested(state),
    )
    assert offered is None or 1 <= offered.nodes <= min(nodes, chosen.most)
    assert reclaimed is None or 1 <= -reclaimed.nodes <= min(nodes, state.transient_nodes)
    assert unrequested is None or 1 <= -unrequested.nodes <= state.transient_nodes


@hypothesis.given(state=drawn_clusters(), name=any_policy, reading=any_reading, nodes=st.integers(0, 30))
def test_answers_depend_on_the_state_alone(state, name, reading, nodes):
    chosen, again = policy(name, reading=reading), policy(name, reading=reading)
    assert chosen.offered(state, nodes) == again.offered(state, nodes)
    assert chosen.reclaimed(state, nodes) == again.reclaimed(state, nodes)


@hypothesis.given(state=drawn_clusters(), nodes=st.integers(1, 30))
def test_gsp_neither_gives_back_what_it_took_nor_takes_what_it_gave_under_an_even_load(state, nodes):
    for change in (GSP.offered(state, nodes), GSP.unrequested(state)):
        if change is not None:
            after = dataclasses.replace(
                state,
                transient_nodes=state.transient_nodes + change.nodes,
                slots=state.slots + change.nodes * NODE_SLOTS,
            )
            assert (GSP.unrequested(after) if change.nodes > 0 else GSP.offered(after, nodes)) is None


# Constants and choice


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"grow_by": 0}, "grow_by"),
        ({"gsp_every_s": 0.0}, "gsp_every_s"),
        ({"shrink_below": 1.5}, "shrink_below"),
        ({"grow_by": 6}, "grow and shrink in turn"),
    ],
)
def test_constants_without_meaning_are_refused_by_name(fields, names):
    with pytest.raises(ValueError, match=names):
        Config(**fields)
