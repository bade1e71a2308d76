"""Blocks lie where HDFS puts them."""

import numpy as np
import pytest

from boathouse_sim import base_world, topology
from boathouse_sim.workload import Cluster


def stores(nodes=12, racks=3, seed=0) -> tuple[topology.Stores, dict]:
    found = base_world.nodes_of(Cluster.of(topology.machines(nodes, cores=1, mem_mb=1, racks=racks)))
    return topology.Stores(found, np.random.default_rng(seed)), {node.name: node.rack for node in found}


def test_three_replicas_lie_on_three_nodes_in_two_racks_the_second_and_third_together():
    made, rack = stores()
    for first, second, third in made.file(200):
        assert len({first, second, third}) == 3
        assert rack[second] == rack[third] != rack[first]


def test_one_rack_and_few_nodes_hold_as_many_replicas_as_there_are_nodes():
    made, _ = stores(nodes=2, racks=1)
    assert {frozenset(block) for block in made.file(10)} == {frozenset({"n0", "n1"})}


def test_blocks_are_spread_evenly():
    made, rack = stores()
    counts = np.bincount([int(name[1:]) for block in made.file(3000) for name in block], minlength=len(rack))
    assert counts.min() > 0.85 * counts.mean()


def test_equal_seeds_give_equal_places():
    assert stores(seed=3)[0].file(20) == stores(seed=3)[0].file(20) != stores(seed=4)[0].file(20)


def test_no_node_that_holds_blocks_is_said():
    with pytest.raises(ValueError, match="stores=True"):
        topology.Stores([], np.random.default_rng(0))
