"""In the course of cycles ILA decides what it does when it judges all nodes anew for each class at each turn."""

from hypothesis import given, settings, strategies as st

from boathouse_policies import ila, model
from tests.builders import core
from tests.builders.core_ila import IlaShell, hosts, linear
from tests.builders.core_plain import plain_rankings

NAMES = [node.name for node in hosts(4, vms_per_host=3)]
CROWDED = linear(0.9, c_u=0.6, c_a=0.6, io_u=0.8, t_c=0.3)

jobs = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 8),
            "locations": st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
            "stage": st.sampled_from([model.Stage.MAP, model.Stage.REDUCE]),
            "size": st.sampled_from([core.amount(cpu, 0.5) for cpu in (500, 1000, 1500, 64_000)]),
            "constraints": st.sampled_from([model.Constraints(), model.Constraints(node_name=NAMES[4])]),
            "demand": st.sampled_from([None, (1.0, 0.0, 0.0), (0.1, 0.2, 0.1)]),
        }
    ),
    min_size=1,
    max_size=6,
)


def decided(loads, config):
    """What some cycles decide, with tasks that end between them, and why the rest waits."""
    shell = IlaShell(hosts(4, vms_per_host=3), config, model_=CROWDED)
    for i, load in enumerate(loads):
        shell.submit(f"job{i}", submitted_s=float(i), **load)
    found = []
    for i in range(5):
        plan = shell.cycle(7.0 * i)
        placed = core.placements(plan)
        found.append((placed, {name: (pending.verdict.code, pending.left) for name, pending in plan.left.items()}))
        for placement in placed[::2]:
            shell.finish(placement, cpu_s=10.0)
    return found


def agree(found, plain):
    """Whether the reasons agree; a class that was refused first, and has no room any more, may say either."""
    either = {model.Code.PATIENCE, model.Code.UNSCHEDULABLE}
    return found.keys() == plain.keys() and all(
        found[name] == plain[name] or ({found[name][0], plain[name][0]} == either and found[name][1] == plain[name][1])
        for name in found
    )


@given(jobs, st.sampled_from([ila.Config(), ila.Config(threshold=2.0), ila.Config(locality=False), ila.static(1)]))
@settings(max_examples=30, deadline=None)
def test_decisions_and_reasons_equal_those_with_all_nodes_reevaluated(loads, config):
    found = decided(loads, config)
    with plain_rankings():
        plain = decided(loads, config)
    assert [placements for placements, _ in found] == [placements for placements, _ in plain]
    assert all(agree(left, expected) for (_, left), (_, expected) in zip(found, plain, strict=True))
