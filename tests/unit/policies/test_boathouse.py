"""Who decides what in the profile `boathouse` where two policies would."""

import numpy as np
import pytest

from boathouse_policies import framework, fspy, ila, model, profiles
from boathouse_policies.ikayak import suspension
from boathouse_policies.ila import metrics
from boathouse_policies.profiles.sharing import OneOfTwo
from boathouse_policies.yarn_me.penalty import Elastic, Mapper
from tests.unit.policies import builders as make
from tests.unit.policies.ila.shell import always, linear

SIZE = make.amount(1000, 2)


def elastic(size, seconds, factor=1.2):
    return Elastic(
        Mapper(ideal_s=seconds, undersized_s=seconds * factor, ideal_bytes=size.memory_bytes),
        ideal_bytes=size.memory_bytes,
    )


@pytest.fixture(autouse=True)
def calm(monkeypatch):
    """Neighbours harm nobody, unless a test says so: ILA's first guesses are high."""
    monkeypatch.setattr(ila.Interference, "mask", lambda *_: None)


class Shell(make.World):
    """Nodes of 4 cores and 8 GiB unless told; each placement starts at once."""

    def __init__(self, *nodes: model.Node, profile="boathouse", **switches: bool) -> None:
        built = profiles.build(profile, switches=profiles.Switches(**switches))
        super().__init__(list(nodes or [make.node()]), profile=built)
        for node in nodes or [make.node()]:
            self.tell(model.Measured(now_s=self.now_s, name=node.name, usage={"cpu_cores": 0.0}))

    def tell(self, event) -> None:
        for one in self.profile.observers:
            one.observe(event)

    def job(self, name="job", count=1, size=None, *, stage=model.Stage.MAP, near=(), seconds=100.0, **fields):
        """A job of one class that can do with less memory where `seconds` are known."""
        size = size or SIZE
        estimates = model.UNKNOWN if seconds is None else elastic(size, seconds)
        job = make.job(name, submitted_s=self.now_s)
        one = make.task_class(job, size, stage.name.lower(), stage=stage, estimates=estimates, **fields)
        self.tell(model.Submitted(now_s=self.now_s, job=job, classes=(one,), tasks={one.id: count}))
        tasks = make.tasks(one, count, locations=tuple(map(model.NodeName, near)))
        self.room.submit(job, [one], tasks, placed=self.ledger)
        return one

    def leave(self, on, cpu, gib) -> None:
        """Somebody else's pod holds a node of 4 cores and 8 GiB but for this much."""
        self.ledger.observe(make.pod(f"pod-{on}", on, make.amount(4000 - cpu, 8 - gib)))

    def cycle(self, **options) -> framework.Plan:
        plan = super().cycle(**options)
        for one in make.placements(plan):
            told = {"now_s": self.now_s, "task": one.task.id, "task_class": one.task_class.id, "job": one.job.id}
            self.tell(model.Placed(**told, node=one.node, resources=one.resources, distance=one.distance))
            self.tell(model.Started(**told, node=one.node))
        return plan


def sizes(plan):
    """(node, millicores, GiB) of each placement."""
    return [(one.node, one.resources.cpu_milli, one.resources.memory_bytes / make.GIB) for one in make.placements(plan)]


def test_a_map_takes_less_memory_at_its_input_before_it_goes_elsewhere_whole():
    shell = Shell(*make.nodes(2))
    shell.leave("n0", cpu=4000, gib=1)
    shell.leave("n1", cpu=1000, gib=2)
    shell.job(count=4, near=["n0"])
    node, cpu, gib = sizes(shell.cycle())[0]
    assert (node, cpu) == ("n0", 1000)
    assert gib < 1


def test_a_map_takes_less_cpu_at_its_input_where_memory_is_ideal():
    shell = Shell()
    for one in shell.profile.observers:
        one.load({"local": 1, "remote": 1})  # half of the maps had to read from afar: μ
    shell.leave("n0", cpu=600, gib=2)
    shell.job(near=["n0"])
    assert sizes(shell.cycle()) == [("n0", 600, 2)]


def test_no_task_has_less_of_both():
    shell = Shell()
    shell.leave("n0", cpu=600, gib=1)
    one = shell.job(count=4, near=["n0"])
    plan = shell.cycle()
    assert sizes(plan) == []
    assert OneOfTwo.reason in plan.diagnosis(one.id).message


@pytest.mark.parametrize("refused", [False, True])
def test_where_neighbours_would_harm_nothing_is_made_smaller_to_fit(monkeypatch, refused):
    monkeypatch.setattr(ila.Interference, "mask", lambda _self, _want, _scratch, where: np.array([not refused])[where])
    shell = Shell()
    shell.leave("n0", cpu=4000, gib=1)
    shell.job(count=8, near=["n0"])
    assert bool(sizes(shell.cycle())) is not refused


@pytest.fixture
def reserved():
    """n0 runs maps for 100 s, and is kept for an executor that needs all of it."""
    shell = Shell()
    shell.job("maps", 3)
    shell.cycle()
    shell.job("spark", size=make.amount(4000, 8), stage=model.Stage.EXECUTOR, seconds=None)
    shell.cycle()
    assert shell.room.reserved == {"n0": "spark/executor"}
    return shell


def test_who_ends_before_the_executor_can_start_may_use_its_node(reserved):
    reserved.job("short", seconds=50.0)
    assert make.where(reserved.cycle()) == [("short/map-0", "n0")]


@pytest.mark.parametrize("seconds", [150.0, None])
def test_who_ends_later_or_no_one_knows_when_may_not(reserved, seconds):
    reserved.job("long", seconds=seconds)
    assert make.where(reserved.cycle()) == []


def test_nodes_of_executors_that_start_together_stay_closed_until_they_start():
    shell = Shell(*make.nodes(2))
    shell.job("maps", 4, make.amount(1800, 2))
    shell.cycle()
    job = make.job("spark")
    sizes_of = {model.Stage.DRIVER: make.amount(1000, 2), model.Stage.EXECUTOR: make.amount(3500, 4)}
    classes = [make.task_class(job, size, stage.value, stage=stage, gang_min=1) for stage, size in sizes_of.items()]
    shell.tell(model.Submitted(now_s=0.0, job=job, classes=tuple(classes), tasks={one.id: 1 for one in classes}))
    shell.room.submit(job, classes, [make.task(one) for one in classes])
    shell.cycle()
    assert shell.room.reserved.keys() == {"n0", "n1"}
    shell.job("rival", 4, make.amount(1600, 2), stage=model.Stage.OTHER, seconds=None)
    for index in range(4):
        shell.now_s += 10.0
        shell.room.tick(shell.now_s)
        shell.end(f"ns/maps/map-{index}")  # the room is free before observers are told
        found = make.where(shell.cycle())
        assert found == [] or index == 3
    assert found[:2] == [("spark/driver-0", "n0"), ("spark/executor-0", "n1")]


def test_an_executor_goes_where_most_is_free():
    shell = Shell(*make.nodes(2))
    shell.leave("n0", cpu=2000, gib=4)
    shell.job("spark", size=SIZE, stage=model.Stage.EXECUTOR, seconds=None)
    assert make.where(shell.cycle()) == [("spark/executor-0", "n1")]


def refusing(shell, *names):
    """Jobs that the neighbours of the only host would slow down, and a cycle in which that is seen."""
    interference = next(one for one in shell.profile.observers if isinstance(one, ila.Interference))
    interference.learner.model = always(9.0)
    classes = [shell.job(name, 2) for name in names]
    return classes, shell.cycle()


def test_whom_interference_refuses_is_seen_at_once_and_retried(monkeypatch):
    monkeypatch.undo()
    classes, plan = refusing(Shell(), "first", "second", "third")
    assert len(sizes(plan)) == 1  # an idle host takes anything
    held = {one.task_class.id for one in plan.decisions if isinstance(one, model.Reservation | model.Wait)}
    assert held == {one.id for one in classes}


def test_where_a_node_may_be_kept_for_whoever_aged_each_is_asked_for_itself(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(fspy.SizeBased, "nobody_aged", property(lambda _: False, lambda *_: None), raising=False)
    monkeypatch.setattr(ila.Retry, "refused", lambda *_: pytest.fail("they would not be asked for"))
    classes, plan = refusing(Shell(), "first", "second")
    assert set(plan.left) == {one.id for one in classes}


def test_each_of_several_maps_of_a_turn_is_a_neighbour_of_the_next(monkeypatch):
    monkeypatch.undo()  # ILA judges as it does
    shell = Shell(make.node(server="host"))
    interference = next(one for one in shell.profile.observers if isinstance(one, ila.Interference))
    interference.learner.model = linear(1.0, c_u=2.0)  # 1, 1.75, 2.5: the third is refused
    for one in shell.profile.observers:
        one.load({"local": 1, "remote": 1})  # μ is a half: five come in one turn, of 800m each
    one = shell.job(count=5, size=make.amount(1500, 1), near=["n0"] * 5)
    interference.profiles.ended(interference.profiles.get(one.id), metrics.Demand(1.5, 0.0, 0.0))
    assert len(sizes(shell.cycle())) == 2


# Switches


@pytest.mark.parametrize("profile", ["boathouse", "yarn-me"])
@pytest.mark.parametrize("resize", [True, False])
def test_without_the_switch_no_task_gets_less_memory(profile, resize):
    shell = Shell(profile=profile, resize=resize)
    shell.leave("n0", cpu=4000, gib=1)
    shell.job(count=4, near=["n0"])
    assert bool(sizes(shell.cycle())) is resize


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
@pytest.mark.parametrize("resize", [True, False])
def test_without_the_switch_no_task_gets_less_cpu(profile, resize):
    shell = Shell(profile=profile, resize=resize)
    shell.leave("n0", cpu=980, gib=8)
    shell.job(near=["n0"])
    assert bool(sizes(shell.cycle())) is resize


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
@pytest.mark.parametrize("suspend", [True, False])
def test_without_the_switch_no_reducer_is_suspended(profile, suspend):
    assert suspension.is_in(profiles.build(profile, switches=profiles.Switches(suspend=suspend))) is suspend


@pytest.mark.parametrize("stage", [model.Stage.DRIVER, model.Stage.EXECUTOR])
@pytest.mark.parametrize("profile", ["boathouse", "ikayak", "fspy"])
def test_filters_and_scores_have_answers_for_applications_before_the_first_cycle(profile, stage):
    whole = profiles.build(profile)
    alone = framework.Profile(name=profile, filters=whole.filters, score=whole.score, scores=whole.scores)
    world = make.World(make.nodes(2), profile=alone)
    job = make.job("spark")
    one = make.task_class(job, SIZE, "spark", stage=stage)
    world.room.submit(job, [one], make.tasks(one, 1), placed=world.ledger)
    assert make.where(world.plan()) == [("spark/spark-0", "n0")]
