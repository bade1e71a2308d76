"""How close nodes are to the waiting input of a class: the column against asking each node."""

from hypothesis import given, settings, strategies as st

from boathouse_policies import model
from boathouse_policies.framework import Closeness, CycleState, Groups, PendingClass
from boathouse_policies.framework.queue import Picker, TaskPool
from tests.builders import core
from tests.builders.core_ila import hosts

NODES = [*hosts(4), core.node("alone"), core.node("racked", rack="r0")]
NAMES = [node.name for node in NODES]


located = st.lists(st.lists(st.sampled_from([*NAMES, "gone"]), max_size=3, unique=True), min_size=1, max_size=12)


@given(located, st.data())
@settings(max_examples=60, deadline=None)
def test_the_column_is_what_asking_each_node_gives_as_tasks_are_taken(places, data):
    of, nodes = core.task_class(core.job()), core.layout(NODES)
    pool = TaskPool([core.task(of, i, where) for i, where in enumerate(places)])
    column, picker = Closeness(pool, nodes), Picker(pool, nodes.topology)
    for _ in pool.pending():
        asked = [int(picker.closest(node).distance) for node in nodes.nodes]
        assert column.levels.tolist() == asked
        pick = picker.closest(data.draw(st.sampled_from(nodes.nodes)))
        picker.take(pick)
        before = column.levels.copy()
        changed = column.take(pick.task)
        assert sorted(changed) == [i for i in range(len(nodes)) if column.levels[i] != before[i]]


def pending_classes(count=3):
    """A class whose input is on h0v0, as cycles see it."""
    shell = core.Shell(hosts(2))
    shell.submit("job", count, locations=["h0v0"])
    waiting = shell.queue.sorted_classes().queued[0]
    return waiting.pool, lambda: PendingClass(waiting, shell.profile, CycleState(shell.view()))


def test_it_is_kept_from_cycle_to_cycle_while_it_is_right():
    pool, pending = pending_classes()
    first, current = pending().levels, pending()
    assert current.levels is first
    pick = current.take_closest(0)
    assert pick is not None
    pool.set_pending(pick.task.id, pending=False)  # placed, as it was decided
    assert pending().levels is first
    pool.set_pending(pool.order[1].id, pending=False)  # placed, and nobody told of it
    assert pending().levels is not first


def test_what_the_cycle_took_before_it_is_asked_for_counts():
    _, pending = pending_classes(count=1)
    current = pending()
    current.take_closest(0)
    assert set(current.levels.tolist()) == {model.Distance.ANYWHERE}


def test_what_was_given_back_counts_again():
    _, pending = pending_classes(count=1)
    current = pending()
    before = current.levels.tolist()
    pick = current.take_closest(0)
    assert pick is not None
    current.give_back(pick)
    assert current.levels.tolist() == before


def test_nodes_in_no_group_are_groups_of_their_own():
    groups = Groups(["h", None, "h", None], ["a", "b", "c", "d"])
    assert groups.names == ("h", "b", "d")
    assert [member.tolist() for member in groups.members] == [[0, 2], [1], [3]]
