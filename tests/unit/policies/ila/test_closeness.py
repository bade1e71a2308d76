"""How close nodes are to the waiting input of a class: the column against asking each node."""

from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse_policies import framework, model
from boathouse_policies.framework import Closeness, Distances, Groups, Scratch, Want
from boathouse_policies.framework.pool import Picker, TaskPool
from tests.unit.policies import builders as make
from tests.unit.policies.ila.shell import hosts

NODES = [*hosts(4), make.node("alone"), make.node("racked", rack="r0")]
NAMES = [node.name for node in NODES]


def layout():
    ledger = framework.Ledger(model.Axis())
    for one in NODES:
        ledger.set_node(one)
    return ledger.snapshot(0.0).layout


def closeness(pool, nodes):
    return Closeness(pool, nodes, Groups.servers(nodes), Groups.racks(nodes))


located = st.lists(st.lists(st.sampled_from([*NAMES, "gone"]), max_size=3, unique=True), min_size=1, max_size=12)


@given(located, st.data())
@settings(max_examples=60, deadline=None)
def test_the_column_is_what_asking_each_node_gives_as_tasks_are_taken(places, data):
    one, nodes = make.task_class(make.job()), layout()
    pool = TaskPool([make.task(one, i, locations=tuple(where)) for i, where in enumerate(places)])
    column, picker = closeness(pool, nodes), Picker(pool, nodes.topology)
    while picker.left:
        asked = [int(picker.closest(node).distance) for node in nodes.nodes]
        assert column.levels.tolist() == asked
        pick = picker.closest(data.draw(st.sampled_from(nodes.nodes)))
        picker.take(pick)
        before = column.levels.copy()
        changed = column.take(pick.task)
        assert changed == [i for i in range(len(nodes)) if column.levels[i] != before[i]]


def test_it_is_kept_from_cycle_to_cycle_while_it_is_right():
    world, distances = make.World(hosts(2)), Distances()
    world.submit("job", 3, locations=("h0v0",))
    waiting = world.room.active()[0]

    def want():
        return Want(waiting, world.profile, Scratch(world.view()))

    first = distances.of(want())
    assert distances.of(want()) is first
    waiting.pool.remove(waiting.pool.order[0].id)  # placed, and nobody told of it
    assert distances.of(want()) is not first
    assert distances.of(want()).left == 2


def test_nodes_in_no_group_are_groups_of_their_own():
    groups = Groups(["h", None, "h", None], ["a", "b", "c", "d"])
    assert groups.names == ("h", "b", "d")
    assert [one.tolist() for one in groups.members] == [[0, 2], [1], [3]]
