"""Who decides what in the profile `boathouse` where two policies would."""

import numpy as np
import pytest

from boathouse_policies import framework, fspy, ila, model, profiles
from boathouse_policies.ikayak import suspension
from boathouse_policies.ila import profiling
from boathouse_policies.profiles.boathouse import OneResourceLess
from tests.builders import core
from tests.builders.core_elastic import SIZE, ElasticShell
from tests.builders.core_ila import linear


@pytest.fixture(autouse=True)
def calm(monkeypatch):
    """Neighbours harm nobody, unless a test says so: ILA's first guesses are high."""
    monkeypatch.setattr(ila.Interference, "mask", lambda *_: None)


def test_a_map_with_less_memory_at_its_input_is_preferred_to_a_whole_one_elsewhere():
    shell = ElasticShell(*core.nodes(2))
    shell.leave("n0", cpu=4000, gib=1)
    shell.leave("n1", cpu=1000, gib=2)
    shell.submit(count=4, locations=["n0"])
    node, cpu, gib = core.sizes_of(shell.cycle())[0]
    assert (node, cpu) == ("n0", 1000)
    assert gib < 1


def test_a_map_takes_less_cpu_at_its_input_where_memory_is_ideal():
    shell = ElasticShell()
    for observer in shell.profile.observers:
        observer.load({"local": 1, "remote": 1})  # half of the maps had to read from afar: μ
    shell.leave("n0", cpu=600, gib=2)
    shell.submit(locations=["n0"])
    assert core.sizes_of(shell.cycle()) == [("n0", 600, 2)]


def test_no_task_has_less_of_both():
    shell = ElasticShell()
    shell.leave("n0", cpu=600, gib=1)
    task_class = shell.submit(count=4, locations=["n0"])
    plan = shell.cycle()
    assert core.sizes_of(plan) == []
    assert OneResourceLess.reason in plan.diagnosis(task_class.id).message


@pytest.mark.parametrize("refused", [False, True])
def test_where_neighbours_would_harm_nothing_is_made_smaller_to_fit(monkeypatch, refused):
    monkeypatch.setattr(ila.Interference, "mask", lambda _self, _want, _scratch, where: np.array([not refused])[where])
    shell = ElasticShell()
    shell.leave("n0", cpu=4000, gib=1)
    shell.measured(shell.submit(count=8, locations=["n0"]))
    assert bool(core.sizes_of(shell.cycle())) is not refused


@pytest.fixture
def shell_with_reservation():
    """n0 runs maps for 100 s, and is kept for an executor that needs all of it."""
    shell = ElasticShell()
    shell.submit("maps", 3)
    shell.cycle()
    shell.submit_spark()
    shell.cycle()
    assert shell.queue.reserved == {"n0": "spark/executor"}
    return shell


def test_who_ends_before_the_executor_can_start_may_use_its_node(shell_with_reservation):
    shell_with_reservation.submit("short", seconds=50.0)
    assert core.where(shell_with_reservation.cycle()) == [("short/map-0", "n0")]


@pytest.mark.parametrize("seconds", [150.0, None])
def test_who_ends_later_or_no_one_knows_when_may_not(shell_with_reservation, seconds):
    shell_with_reservation.submit("long", seconds=seconds)
    assert core.where(shell_with_reservation.cycle()) == []


@pytest.mark.parametrize(("age_s", "found"), [(10.0, [("little/executor-0", "n0")]), (310.0, [])])
def test_an_executor_whose_job_goes_before_the_owner_may_use_the_node_for_a_while(age_s, found):
    shell = ElasticShell()
    shell.submit("maps", 3, seconds=1000.0)
    shell.cycle()
    shell.submit_spark()
    shell.cycle()
    shell.advance(age_s)
    shell.submit("little", 1, core.amount(500, 1), stage=model.Stage.EXECUTOR, seconds=None)
    assert core.where(shell.cycle()) == found


def test_nodes_of_executors_that_start_together_stay_closed_until_they_start():
    shell = ElasticShell(*core.nodes(2))
    shell.submit("maps", 4, core.amount(1800, 2))
    shell.cycle()
    job = core.job("spark")
    sizes_of = {model.Stage.DRIVER: core.amount(1000, 2), model.Stage.EXECUTOR: core.amount(3500, 4)}
    classes = [core.task_class(job, size, stage.value, stage=stage, gang_min=1) for stage, size in sizes_of.items()]
    shell.submit_job(job, classes, [core.task(of) for of in classes])
    shell.cycle()
    assert shell.queue.reserved.keys() == {"n0", "n1"}
    shell.submit("rival", 4, core.amount(1600, 2), stage=model.Stage.OTHER, seconds=None)
    for index in range(3):
        shell.advance(10.0 * (index + 1))
        shell.end(f"ns/maps/map-{index}")  # the room is free before observers are told
        found = core.where(shell.cycle())
        assert found == [] or index == 2
    assert found[:2] == [("spark/executor-0", "n0"), ("spark/driver-0", "n1")]


def test_an_executor_is_placed_where_most_is_free():
    shell = ElasticShell(*core.nodes(2))
    shell.leave("n0", cpu=2000, gib=4)
    shell.submit_spark(SIZE)
    assert core.where(shell.cycle()) == [("spark/executor-0", "n1")]


def submit_two_each(shell, *names):
    """Jobs of two tasks, and the plan of a cycle."""
    classes = [shell.submit(name, 2) for name in names]
    shell.measured(*classes)
    return {of.id for of in classes}, shell.cycle()


def test_whom_interference_refuses_is_seen_at_once_and_retried(monkeypatch):
    monkeypatch.undo()
    classes, plan = submit_two_each(ElasticShell(slowdown=9.0), "first", "second", "third")
    assert len(core.placements(plan)) == 1  # an idle host takes anything
    held = {
        decision.task_class.id for decision in plan.decisions if isinstance(decision, model.Reservation | model.Wait)
    }
    assert held == classes


def test_where_a_node_may_be_kept_for_whoever_aged_each_is_asked_for_itself(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(fspy.SizeBased, "nobody_aged", property(lambda _: False, lambda *_: None), raising=False)
    monkeypatch.setattr(ila.Retry, "refused", lambda *_: pytest.fail("they would not be asked for"))
    classes, plan = submit_two_each(ElasticShell(slowdown=9.0), "first", "second")
    assert set(plan.left) == classes


def test_each_of_several_maps_of_a_turn_is_a_neighbour_of_the_next(monkeypatch):
    monkeypatch.undo()  # ILA judges as it does
    shell = ElasticShell(core.node(server="host"))
    interference = shell.observer(ila.Interference)
    interference.learners.first.model = linear(1.0, c_u=2.0)  # 1, 1.75, 2.5: the third is refused
    for observer in shell.profile.observers:
        observer.load({"local": 1, "remote": 1})  # μ is a half: five come in one turn, of 800m each
    of = shell.submit(count=5, size=core.amount(1500, 1), locations=["n0"])
    interference.profiles.ended(interference.profiles.get(of.id), profiling.Demand(1.5, 0.0, 0.0))
    assert len(core.placements(shell.cycle())) == 2


# Switches


@pytest.mark.parametrize("profile", ["boathouse", "yarn-me"])
@pytest.mark.parametrize("resize", [True, False])
def test_without_the_switch_no_task_gets_less_memory(profile, resize):
    shell = ElasticShell(profile=profile, resize=resize)
    shell.leave("n0", cpu=4000, gib=1)
    shell.submit(count=4, locations=["n0"])
    assert bool(core.sizes_of(shell.cycle())) is resize


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
@pytest.mark.parametrize("resize", [True, False])
def test_without_the_switch_no_task_gets_less_cpu(profile, resize):
    shell = ElasticShell(profile=profile, resize=resize)
    shell.leave("n0", cpu=980, gib=8)
    shell.submit(locations=["n0"])
    assert bool(core.sizes_of(shell.cycle())) is resize


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
@pytest.mark.parametrize("suspend", [True, False])
def test_without_the_switch_no_reducer_is_suspended(profile, suspend):
    assert suspension.is_in(profiles.build(profile, switches=profiles.Switches(suspend=suspend))) is suspend


@pytest.mark.parametrize("stage", [model.Stage.DRIVER, model.Stage.EXECUTOR])
@pytest.mark.parametrize("profile", ["boathouse", "ikayak", "fspy"])
def test_filters_and_scores_have_answers_for_applications_before_the_first_cycle(profile, stage):
    whole = profiles.build(profile)
    alone = framework.Profile(name=profile, filters=whole.filters, score=whole.score, scores=whole.scores)
    shell = core.Shell(core.nodes(2), profile=alone)
    job = core.job("spark")
    task_class = core.task_class(job, SIZE, "spark", stage=stage)
    shell.queue.submit(job, [task_class], core.tasks(task_class, 1), placed=shell.ledger)
    assert core.where(shell.plan()) == [("spark/spark-0", "n0")]
