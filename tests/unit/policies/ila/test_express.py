"""The short way of plain cycles decides what the general way does."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import ila, model, profiles
from boathouse_policies.ila import metrics
from tests.unit.policies import builders as make
from tests.unit.policies.ila.shell import Shell, hosts, linear

NAMES = [node.name for node in hosts(4, each=3)]
CROWDED = linear(0.9, c_u=0.6, c_a=0.6, io_u=0.8, t_c=0.3)

jobs = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 8),
            "locations": st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
            "stage": st.sampled_from([model.Stage.MAP, model.Stage.REDUCE]),
            "cpu": st.sampled_from([500, 1000, 1500, 64_000]),
            "constraints": st.sampled_from([model.Constraints(), model.Constraints(node_name=NAMES[4])]),
            "used": st.sampled_from([None, (1.0, 0.0, 0.0), (0.1, 0.2, 0.1)]),
        }
    ),
    min_size=1,
    max_size=6,
)


def told(loads, config, *, short):
    """What some cycles decide, with tasks that end between them; and whether the general way was gone."""
    world = Shell(hosts(4, each=3), config, model_=CROWDED)
    world.profile = world.profile if short else dataclasses.replace(world.profile, express=None)
    for i, load in enumerate(loads):
        fields = {name: load[name] for name in ("locations", "stage", "constraints")}
        size = make.amount(load["cpu"], 0.5)
        one = world.maps(f"job{i}", load["count"], size=size, submitted_s=float(i), **fields)
        if load["used"] is not None:
            world.interference.demands.ended(one.id, metrics.Demand(*load["used"]))
    found = []
    for i in range(5):
        plan = world.go(7.0 * i)
        found.append((plan.decisions, {name: (one.verdict, one.count) for name, one in plan.left.items()}))
        for one in make.placements(plan)[::2]:
            world.finish(one)
    return found


@given(jobs, st.sampled_from([ila.Config(), ila.Config(threshold=2.0), ila.Config(locality=False), ila.static(1)]))
@settings(max_examples=60, deadline=None)
def test_the_decisions_and_the_reasons_are_those_of_the_general_way(loads, config):
    assert told(loads, config, short=True) == told(loads, config, short=False)


def world_of(**fields):
    world = Shell(hosts(2), model_=CROWDED)
    world.maps("job", 2, **fields)
    return world


def goes_short(world, **options):
    return world.profile.express.plan(world.room, world.profile, world.view(**options)) is not None


def test_maps_and_reducers_go_the_short_way():
    assert goes_short(world_of())
    assert goes_short(world_of(stage=model.Stage.REDUCE))


@pytest.mark.parametrize("fields", [{"stage": model.Stage.EXECUTOR}, {"gang_min": 2}])
def test_what_else_decides_takes_the_general_way(fields):
    assert not goes_short(world_of(**fields))


def test_nodes_that_offer_themselves_take_the_general_way():
    assert not goes_short(world_of(), offered=[NAMES[0]], max_per_node=1)


def test_a_pod_that_is_still_to_come_takes_the_general_way():
    world, job = world_of(), make.job("later")
    one = make.task_class(job, stage=model.Stage.MAP)
    world.room.submit(job, [one], [make.task(one, 0, expected=True), make.task(one, 1)])
    assert not goes_short(world)


def test_filters_of_a_shell_take_the_general_way():
    world = world_of()
    world.profile = dataclasses.replace(world.profile, filters=world.profile.filters[:-1])
    assert not goes_short(world)


def test_a_limited_queue_takes_the_general_way():
    world = world_of()
    world.room.set_queues([model.Queue.of(model.QueueName("default"), limits={"cpu": 1000})])
    assert not goes_short(world)


def test_who_only_looks_after_locality_has_no_short_way():
    assert profiles.build("lao").express is None
