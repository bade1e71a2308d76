"""Where YARN puts Spark's executors: spread out or not, one application at a time or many."""

import pytest

from boathouse_policies import model, profiles

from . import builders as make

EXECUTOR = {"size": make.amount(4000, 4), "stage": model.Stage.EXECUTOR}
MAP = {"size": make.amount(2000, 2)}


class World(make.World):
    """Four nodes of 8 cores; tells its profile what happens, as a shell does."""

    def __init__(self, profile):
        super().__init__(make.nodes(4, make.amount(8000, 16)), profile=profiles.build(profile))

    def tell(self, event):
        for one in self.profile.observers:
            one.observe(event)

    def come(self, name, count, **fields):
        one = self.submit(name, count, **fields)
        owner = make.job(name, submitted_s=fields.get("submitted_s", 0.0))
        self.tell(model.Submitted(now_s=self.now_s, job=owner, classes=(one,), tasks={one.id: count}))
        return one

    def go(self):
        """A cycle; the nodes of what it placed."""
        plan = self.cycle()
        for one in make.placements(plan):
            where = {"task": one.task.id, "task_class": one.task_class.id, "job": one.job.id, "node": one.node}
            self.tell(model.Placed(now_s=self.now_s, resources=one.resources, distance=one.distance, **where))
        return sorted(one.node for one in make.placements(plan))

    def reserved(self):
        return dict(self.room.reserved)

    def fill(self, *nodes):
        """Two foreign pods of 3 cores on each node: an executor fits once one of them ended."""
        for node in nodes:
            for i in range(2):
                self.ledger.observe(make.pod(f"{node}-{i}", on=node, size=make.amount(3000, 1)))


EVERY = ("n0", "n1", "n2", "n3")


def test_spread_out_takes_the_nodes_in_turn():
    world = World("spread-out")
    world.come("app", 4, **EXECUTOR)
    assert world.go() == list(EVERY)


def test_non_spread_out_fills_one_node_after_the_other():
    world = World("non-spread-out")
    world.come("app", 4, **EXECUTOR)
    taken = world.go()
    assert [taken.count(node) for node in sorted(set(taken))] == [2, 2]


def test_which_node_is_first_differs_by_application():
    firsts = set()
    for name in ("a", "b", "c", "d", "e", "f"):
        world = World("non-spread-out")
        world.come(name, 1, **EXECUTOR)
        firsts.update(world.go())
    assert len(firsts) > 1


def test_executors_without_room_have_nodes_reserved_which_nobody_else_may_use():
    world = World("spread-out")
    world.fill(*EVERY)
    world.come("app", 4, **EXECUTOR)
    assert world.go() == []
    assert world.reserved() == dict.fromkeys(EVERY, "app/map")
    world.come("maps", 4, **MAP)
    assert world.go() == []  # though two cores are free on each node


def test_an_executor_waits_for_the_node_that_was_reserved_and_goes_to_no_other():
    world = World("spread-out")
    world.fill(*EVERY)
    world.come("app", 1, **EXECUTOR)
    world.go()
    (mine,) = world.reserved()
    other = next(node for node in EVERY if node != mine)
    world.end(f"ns/{other}-0")
    world.room.nodes_changed()
    assert world.go() == []
    world.end(f"ns/{mine}-0")
    assert world.go() == [mine]
    assert world.reserved() == {}


@pytest.mark.parametrize(("profile", "nodes"), [("spread-out", 4), ("non-spread-out", 2)])
def test_as_many_nodes_are_reserved_as_the_strategy_needs(profile, nodes):
    world = World(profile)
    world.fill(*EVERY)
    world.come("app", 4, **EXECUTOR)
    world.go()
    assert len(world.reserved()) == nodes


def test_no_node_is_reserved_that_is_full_of_the_applications_own_executors():
    world = World("non-spread-out")
    world.come("app", 9, **EXECUTOR)
    assert len(world.go()) == 8
    world.now_s = 1.0  # the next heartbeat, at which they are counted
    assert world.go() == []
    assert world.reserved() == {}


def test_maps_reserve_nothing():
    world = World("yarn-cluster")
    world.come("maps", 40, **MAP)
    world.go()
    assert world.reserved() == {}


def test_yarn_client_hosts_one_application_at_a_time():
    world = World("yarn-client")
    world.come("first", 2, **EXECUTOR)
    world.come("second", 2, submitted_s=1.0, **EXECUTOR)
    assert len(world.go()) == 2
    assert world.reserved() == {}
    for i in range(2):
        world.end(f"ns/first/map-{i}")
    world.tell(model.Ended(now_s=9.0, job=model.JobId("first"), succeeded=True))
    world.room.withdraw(model.JobId("first"))
    world.now_s = 61.0
    assert len(world.go()) == 2


def test_yarn_cluster_hosts_many():
    world = World("yarn-cluster")
    world.come("first", 2, **EXECUTOR)
    world.come("second", 2, submitted_s=1.0, **EXECUTOR)
    assert len(world.go()) == 4


def test_what_waits_behind_another_application_says_so():
    world = World("yarn-client")
    world.come("first", 2, **EXECUTOR)
    late = world.come("second", 2, submitted_s=1.0, **EXECUTOR)
    plan = world.plan()
    assert "Spark application first runs" in plan.diagnosis(late.id).message
