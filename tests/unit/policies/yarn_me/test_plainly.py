"""In whole simulations YARN-ME decides what it does when it ranks all nodes anew for each class at each turn."""

import numpy as np
import pytest

from boathouse_lab import table2
from boathouse_policies import yarn_me
from boathouse_sim.simulation import Heartbeats, Instant
from tests.builders import core, simulations
from tests.builders.core_plain import plain_rankings


def decisions(shell, workload):
    """The placements of a simulation."""
    return simulations.placement_log(shell(workload, yarn_me.build()))


@pytest.mark.parametrize("shell", [Instant, Heartbeats])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_whole_simulations_decide_the_same_with_all_nodes_reranked(shell, seed):
    random = np.random.default_rng(seed)
    workload = table2.Table2(tasks=(1, 25), penalty_factor=1.5 if seed else 3.0, arrival_s=300).draw(7, 3, random)
    found = decisions(shell, workload)
    with plain_rankings():
        assert decisions(shell, workload) == found


def test_a_cycle_fills_the_nodes_and_says_why_the_rest_waits():
    shell = core.Shell(core.nodes(2), profile=yarn_me.build())
    shell.submit(count=20, size=core.amount(1000, 4))
    plan = shell.plan()
    assert len(core.placements(plan)) == 4
    assert {pending.left for pending in plan.left.values()} == {16}


def test_cpu_bounds_what_the_only_node_takes_as_memory_does():
    shell = core.Shell(core.nodes(1, core.amount(2000, 8)), profile=yarn_me.build())
    shell.submit(count=5, size=core.amount(1000, 1))
    assert len(core.placements(shell.plan())) == 2
