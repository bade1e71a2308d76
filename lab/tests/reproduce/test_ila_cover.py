"""Equations 5 and 6 of ILA (appendix .11): on how many hosts the data of a job are."""

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from boathouse_lab.reproduce.ila import cover

sizes = st.tuples(st.integers(1, 8), st.integers(1, 5)).flatmap(
    lambda nm: st.tuples(st.just(nm[0]), st.just(nm[1]), st.integers(1, nm[0] * nm[1]))
)


@given(sizes)
def test_the_probabilities_add_up_to_one(size):
    assert sum(cover.probabilities(*size).values()) == pytest.approx(1.0)


@given(sizes)
def test_the_expectation_is_that_of_hosts_that_are_not_missed(size):
    hosts, machines_per_host, holding = size
    missed = math.comb(hosts * machines_per_host - machines_per_host, holding) / math.comb(
        hosts * machines_per_host, holding
    )
    assert cover.expected_hosts(*size) == pytest.approx(hosts * (1 - missed))


@given(st.integers(2, 4), st.integers(1, 3), st.data())
def test_counting_all_placements_gives_the_same_probabilities(hosts, machines_per_host, data):
    holding = data.draw(st.integers(1, hosts * machines_per_host))
    every = [
        len({node // machines_per_host for node in some})
        for some in itertools.combinations(range(hosts * machines_per_host), holding)
    ]
    for q, probability in cover.probabilities(hosts, machines_per_host, holding).items():
        assert probability == pytest.approx(every.count(q) / len(every))


@pytest.mark.parametrize(("holding", "exact"), [(7, 6.232), (29, 6.293)])
def test_the_papers_cluster_gives_these_ratios_exactly(holding, exact):
    hosts = cover.expected_hosts(12, 6, holding)
    assert cover.skips_ratio(holding / 72, hosts / 12) == pytest.approx(exact, abs=5e-4)


def test_the_printed_ratios_follow_from_independent_nodes_and_rounding():
    def skips(p, share):
        return math.log(1 - share) / math.log(1 - p)

    def hosts(p):
        return 1 - (1 - p) ** 6

    assert round(round(skips(0.1, 0.99), 1) / round(skips(hosts(0.1), 0.99), 1), 2) == 5.99
    assert round(skips(0.4, 0.95) / max(1.0, skips(hosts(0.4), 0.95)), 2) == 5.86


def test_more_data_than_nodes_is_refused():
    with pytest.raises(ValueError, match="1 to 6 of 3 x 2 nodes"):
        cover.probabilities(3, 2, 7)
