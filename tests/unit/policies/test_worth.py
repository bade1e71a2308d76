"""In the profile `boathouse` a paper's part acts where that is worth more than it costs."""

from types import SimpleNamespace

import numpy as np
import pytest

from boathouse_policies import fspy, ikayak, ila, model
from boathouse_policies.ikayak.book import Reducer
from boathouse_policies.ikayak.suspension import REASON
from boathouse_policies.profiles.guard import Guard, Part
from boathouse_policies.profiles.worth import NEUTRAL, Lending, Prices, Refusing, Worth
from tests.builders import core
from tests.builders.core_elastic import SIZE, ElasticShell, elastic_estimates


@pytest.mark.parametrize(("gain", "cost", "deviation", "pays"), [(3, 1, 1, True), (3, 1, 2, False), (1, 1, 0, False)])
def test_a_gain_must_exceed_the_cost_by_more_than_chance(gain, cost, deviation, pays):
    assert Worth(gain, cost, deviation).is_worthwhile is pays


def test_what_is_not_known_does_not_pay():
    assert not NEUTRAL.is_worthwhile


# Prices


def prices_of(shell):
    prices = next(controller for controller in shell.profile.controllers if isinstance(controller, Prices))
    prices.advise(shell.queue, shell.ledger.snapshot(shell.now_s))
    return prices.columns


def test_a_price_is_the_number_of_jobs_that_wait_over_the_total_of_what_stops_them():
    shell = ElasticShell(*core.nodes(2))
    shell.leave("n0", cpu=4000, gib=1)
    shell.leave("n1", cpu=0, gib=8)
    for name in ("a", "b", "c"):
        shell.submit(name, 4, core.amount(1000, 2))
    cpu, memory = prices_of(shell)
    assert cpu.tolist() == [0.0, pytest.approx(3 / 8000)]
    assert memory.tolist() == [pytest.approx(3 / (16 * core.GIB)), 0.0]


def test_nobody_who_waits_makes_everything_free():
    assert not prices_of(ElasticShell()).any()


# Refusals


@pytest.fixture
def refused():
    """A class that all hosts would slow down nine times, and that runs for 100 s alone."""
    shell = ElasticShell(slowdown=9.0)
    shell.submit("first")
    shell.cycle()
    task_class = shell.submit("second")
    shell.measured(task_class)
    (wait,) = [decision for decision in shell.cycle().decisions if isinstance(decision, model.Wait)]
    return shell, wait


def test_a_task_is_kept_from_hosts_for_no_longer_than_it_would_lose_there(refused):
    shell, wait = refused
    assert wait.until_s == ila.Config().recheck_s
    shell.advance(49.0)
    assert core.placements(shell.cycle()) == []
    shell.advance(51.0)
    assert core.where(shell.cycle()) == [("second/map-0", "n0")]


def test_a_refusal_is_looked_at_again_once_it_is_no_longer_worth_it(refused):
    shell, _ = refused
    shell.advance(48.0)
    (wait,) = [decision for decision in shell.cycle().decisions if isinstance(decision, model.Wait)]
    assert wait.until_s == 50.0


def test_a_refusal_that_is_hardly_worth_it_any_more_is_looked_at_later_not_at_once(refused, monkeypatch):
    shell, _ = refused
    monkeypatch.setattr(Refusing, "recheck_after_s", lambda *_: 1e-14)
    shell.advance(48.0)
    (wait,) = [decision for decision in shell.cycle().decisions if isinstance(decision, model.Wait)]
    assert wait.until_s == 49.0


@pytest.mark.parametrize(("seconds", "is_measured"), [(None, True), (100.0, False)])
def test_a_class_of_which_too_little_is_known_is_refused_nowhere(seconds, is_measured):
    shell = ElasticShell(slowdown=9.0)
    shell.submit("first")
    shell.cycle()
    task_class = shell.submit("second", seconds=seconds)
    if is_measured:
        shell.measured(task_class)
    assert core.where(shell.cycle()) == [("second/map-0", "n0")]


# Less memory


@pytest.mark.parametrize(("factor", "is_smaller"), [(1.2, True), (20.0, False)])
def test_a_task_takes_less_memory_only_where_that_saves_memory_seconds(monkeypatch, factor, is_smaller):
    monkeypatch.setattr("boathouse_policies.yarn_me.decide.Elasticity.ends_in_time", lambda *_: True)
    shell = ElasticShell()
    shell.leave("n0", cpu=4000, gib=1)
    shell.submit(estimates=elastic_estimates(SIZE, 100.0, factor))
    plan = shell.cycle()
    assert bool(core.sizes_of(plan)) is is_smaller
    if is_smaller:
        figures = dict(core.placements(plan)[0].figures)
        assert figures["gainSeconds"] > figures["costSeconds"] == 0.0


def test_where_cpu_is_what_stops_tasks_memory_saves_nothing(monkeypatch):
    monkeypatch.setattr("boathouse_policies.yarn_me.decide.Elasticity.ends_in_time", lambda *_: True)
    shell = ElasticShell()
    shell.leave("n0", cpu=1000, gib=1.9)
    shell.submit("busy", 4, core.amount(4000, 1), stage=model.Stage.OTHER, seconds=None)
    shell.submit()
    assert core.sizes_of(shell.cycle()) == []


@pytest.mark.parametrize(("cpu", "is_smaller"), [(1000, False), (2000, True)])
def test_the_last_free_cpu_of_a_node_is_for_a_task_with_all_its_memory(cpu, is_smaller):
    shell = ElasticShell()
    shell.leave("n0", cpu=cpu, gib=1)
    shell.submit()
    assert bool(core.sizes_of(shell.cycle())) is is_smaller


@pytest.mark.parametrize(("maps", "is_smaller"), [(0, True), (3, False)])
def test_a_reducer_that_would_wait_for_maps_takes_no_less_memory(maps, is_smaller):
    shell, job = ElasticShell(), core.job("mr")
    shell.leave("n0", cpu=4000, gib=1)
    waiting = core.task_class(job, core.amount(1000, 1000), "map", stage=model.Stage.MAP)
    reduces = core.task_class(
        job, SIZE, "reduce", stage=model.Stage.REDUCE, estimates=elastic_estimates(SIZE, 100.0, 1.2)
    )
    shell.submit_job(job, [waiting, reduces], [*core.tasks(waiting, maps), *core.tasks(reduces, 1)])
    assert bool(core.sizes_of(shell.cycle())) is is_smaller


# Reservations


@pytest.fixture
def reserved():
    """n0 is reserved for an executor of a program whose applications took long, and 1 core of it comes free."""
    shell = ElasticShell()
    order = shell.observer(fspy.SizeBased)
    order.predictor.apps.add("etl", 1, 1e15)
    shell.submit("maps", 4)
    shell.cycle()
    shell.submit_spark(kind="etl")
    shell.cycle()
    assert shell.queue.reserved == {"n0": "spark/executor"}
    shell.advance(1.0)
    shell.end("ns/maps/map-0")
    return shell


@pytest.mark.parametrize(("now_s", "passes"), [(1.0, True), (150.0, True), (299.0, False)])
def test_who_goes_before_the_owner_may_use_its_node_for_a_bounded_time(reserved, now_s, passes):
    reserved.submit("small")
    reserved.advance(now_s)
    assert bool(core.where(reserved.cycle())) is passes


def test_who_goes_after_the_owner_may_not(reserved):
    reserved.submit("large", 1_000_000)
    assert core.where(reserved.cycle()) == []


# Executors beyond the minimum


@pytest.mark.parametrize(("now_s", "seconds", "granted"), [(1.0, 10.0, 1), (61.0, 10.0, 3), (1.0, 1e9, 3)])
def test_executors_beyond_the_minimum_wait_for_jobs_with_less_left_for_a_while(now_s, seconds, granted):
    shell = ElasticShell(core.node(), core.node("n1", core.amount(1000, 8)))
    shell.observer(fspy.SizeBased).predictor.apps.add("etl", 1, 1e14)
    job = core.job("spark", kind="etl")
    shell.leave("n0", cpu=4000, gib=6)
    executors = core.task_class(job, core.amount(1000, 1), "executor", stage=model.Stage.EXECUTOR)
    shell.submit_job(job, [executors], core.tasks(executors, 3))
    shell.ledger.observe(core.account("driver", "n1", core.amount(1000, 1), job=job.id))
    shell.submit("wide", 1, core.amount(4000, 7), estimates=model.Fixed(seconds=seconds))
    found = core.where(shell.cycle())
    shell.advance(now_s)
    found += core.where(shell.cycle())
    assert len([task for task, _ in found if task.startswith("spark")]) == granted


# Suspensions


class Lent:
    """Some reducers on n0, of one core each, beside which maps of 2 GiB wait, for 60 s."""

    def __init__(self, cpu_price, *, seconds=30.0, count=1, free_gib=8.0):
        self.shell = ElasticShell()
        self.shell.leave("n0", cpu=4000, gib=free_gib)
        task_class = core.task_class(core.job("mr"), SIZE, estimates=model.Fixed(seconds=seconds))
        job = SimpleNamespace(job=core.job("mr"), classes={task_class.id: task_class}, lacks_maps=True)
        task = SimpleNamespace(node="n0", task_class=task_class.id, task="mr/r-0", resources=SIZE)
        self.reducers = [Reducer(task, job) for _ in range(count)]
        self.suspended = []
        book = SimpleNamespace(suspended=lambda: self.suspended, lacking=list, reducers={"mr/r-0": self.reducers[0]})
        self.guard, prices = Guard(), SimpleNamespace(columns=np.array([[cpu_price], [0.0]]))
        self.lending = Lending(ikayak.Config(), book, prices, self.guard)

    def reasons(self):
        view = self.shell.ledger.snapshot(0.0)
        chosen = self.lending.worthwhile(self.reducers, 60.0, {"other": SIZE.memory_bytes}, view)
        return [self.lending.reason_for(reducer) for reducer in chosen]

    def advise(self, now_s):
        return self.lending.advise(self.shell.queue, self.shell.ledger.snapshot(now_s))


@pytest.mark.parametrize(("cpu_price", "seconds", "lends"), [(0.0, 30.0, 0), (1e-3, 30.0, 1), (1e-3, None, 0)])
def test_a_reducer_lends_its_cpu_where_that_is_worth_more_than_what_it_copies_later(cpu_price, seconds, lends):
    assert len(Lent(cpu_price, seconds=seconds).reasons()) == lends


def test_a_reducer_of_a_step_that_is_over_lends_nothing():
    lent = Lent(1e-3)
    lent.reducers[0].job.classes = {}
    assert lent.reasons() == []


def test_a_suspension_says_what_it_gains_and_costs():
    assert Lent(1e-3).reasons() == [f"{REASON} (gain 60.0 s, cost 11.0 s)"]


def test_no_more_reducers_lend_than_maps_fit_beside_them():
    assert len(Lent(1e-3, count=5, free_gib=4.0).reasons()) == 2


def test_the_guard_hears_of_a_suspension_that_ended_however_late_it_began():
    world = Lent(1e-3)
    assert world.reasons()
    world.advise(5.0)
    world.suspended = [(world.reducers[0], SimpleNamespace(until_s=60.0))]
    (back,) = world.advise(10.0)  # no map waits any more
    assert isinstance(back, model.Resume)
    effect = world.guard.effects[Part.SUSPENSION]
    assert effect == (1, 49.0, -11.0)
