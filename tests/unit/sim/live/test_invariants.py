"""What must hold after every event of a live simulation, whatever the workload, the profile and what goes wrong."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_lab.invariants import BrokenInvariantError, Invariants
from boathouse_policies import framework, model, profiles
from boathouse_sim import conditions
from boathouse_sim.conditions import Outages
from boathouse_sim.live import DynamicAllocation, Live, LiveHeartbeats
from tests.builders import simulations

jobs = st.builds(
    lambda maps, reduces, slow, replicas, mb: ("mr", maps, reduces, slow, replicas, mb),
    st.integers(1, 6),
    st.integers(0, 3),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 2),
    st.sampled_from([500, 1500]),
)
applications = st.builds(
    lambda executors, gang, tasks, dynamic: ("spark", executors, min(gang, executors), tasks, dynamic),
    st.integers(1, 3),
    st.integers(0, 2),
    st.lists(st.integers(1, 6), min_size=1, max_size=2),
    st.booleans(),
)


def app_of(i, drawn):
    at_ms = 3000 * i
    if drawn[0] == "mr":
        _, maps, reduces, slow, replicas, mb = drawn
        mapper, reduce = (
            simulations.container(simulations.cpu(5), mb=mb, factor=1.5),
            simulations.reducer(mb=mb) if reduces else None,
        )
        return simulations.mapreduce(
            str(i), maps, mapper, reduces, reduce, slow_start=slow, replicas=replicas, submit_ms=at_ms
        )
    _, executors, gang, tasks, dynamic = drawn
    return simulations.spark(
        str(i),
        executors,
        tuple(tasks),
        driver=simulations.container(mb=200) if gang else None,
        min_executors=gang,
        dynamic=DynamicAllocation(least=1, most=4, idle_s=1.0) if dynamic and not gang else None,
        submit_ms=at_ms,
    )


class Fickle(framework.Observer):
    """Suspends, resumes and resizes in turn whatever it last heard of."""

    def __init__(self):
        self.last, self.turn = None, 0

    def observe(self, event):
        if isinstance(event, model.Started):
            self.last = event

    def advise(self, _queue, view):
        if self.last is None:
            return []
        self.turn += 1
        task = model.Task(id=self.last.task, task_class=self.last.task_class)
        small = model.Resources(cpu_milli=1 + 250 * (self.turn % 4), memory_bytes=200 << 20)
        until_s = view.now_s + 2 + self.turn % 2
        return [
            [model.Suspend(task=task, node=self.last.node, resources=small, until_s=until_s, reason="")],
            [model.Resume(task=task, node=self.last.node, resources=small, reason="")],
            [model.Resize(task=task, node=self.last.node, resources=small, reason="")],
        ][self.turn % 3]

    def dump(self):
        return {}

    def load(self, state):
        pass


@pytest.mark.parametrize("name", ["fifo", "yarn", "yarn-me"])
@hypothesis.settings(max_examples=6, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(
    drawn=st.lists(jobs | applications, min_size=1, max_size=4),
    shared=st.booleans(),
    failing=st.booleans(),
    fickle=st.booleans(),
    beating=st.booleans(),
)
def test_nothing_breaks(name, drawn, shared, failing, fickle, beating):
    apps = [app_of(i, description) for i, description in enumerate(drawn)]
    found = simulations.live_workload(
        *apps,
        nodes=3,
        racks=2,
        mb=6000,
        contention=conditions.Saturation() if shared else None,
        reads_load_sources=True,
        outages=Outages(mean_time_to_failure_s=60, mean_time_to_recovery_s=10) if failing else Outages(),
        tick_ms=1500,
        suspend_ms=300,
    )
    profile, script = profiles.build(name), Fickle()
    if fickle:
        profile = dataclasses.replace(profile, controllers=(script,), observers=(*profile.observers, script))
    shell = LiveHeartbeats if beating and not any(getattr(app, "min_executors", 0) for app in apps) else Live
    check_end(simulations.run(shell(found, profile), Invariants()), apps, failing=failing)


def check_end(world, apps, *, failing):
    assert world.finished().jobs == len(apps)
    assert (len(world.ledger), len(world.pods), len(world.room)) == (0, 0, 0)
    assert all((room.cpu_milli, room.memory_bytes) == (0, 0) for room in world.sizes.taken.values())
    done = [
        (record.job, record.kind, record.index)
        for record in world.records
        if not record.lost and record.kind in ("map", "reduce")
    ]
    if not failing and not world.tally.lost:
        assert len(set(done)) == len(done)
        assert world.rates.done_ms == pytest.approx(sum(work_of(app) for app in apps))
    assert set(done) == {
        (app.id, kind, i)
        for app in apps
        if hasattr(app, "maps")
        for kind, count in (("map", app.maps), ("reduce", app.reduces))
        for i in range(count)
    }


def work_of(app):
    if hasattr(app, "maps"):
        return app.maps * app.map.work_ms + (app.reduces * app.reduce.work_ms if app.reduces else 0)
    return sum(stage.tasks * stage.work.work_ms for stage in app.stages)


def running_world():
    driver = Live(simulations.live_workload(simulations.mapreduce(reduces=1)), profiles.build("fifo"))
    check = Invariants()
    while not driver.world.pods:
        driver.advance()
    check(driver.world)
    return driver.world, check


def test_a_node_that_holds_too_much_is_seen():
    world, check = running_world()
    world.sizes.taken["n0"].cpu_milli += 4000
    with pytest.raises(BrokenInvariantError, match="really holds"):
        check(world)


def test_work_that_grows_again_is_found():
    world, check = running_world()
    world.clock.now_ms += 5
    check(world)
    next(mapper for pod in world.pods.values() for mapper in pod.activities if mapper.gate is None).left_ms += 3
    with pytest.raises(BrokenInvariantError, match="more work"):
        check(world)


def test_a_suspended_task_that_runs_is_found():
    world, check = running_world()
    for pod in world.pods.values():
        pod.suspended = True
    check(world)
    world.clock.now_ms += 5
    with pytest.raises(BrokenInvariantError, match="is suspended and goes on"):
        check(world)


def test_a_counter_that_is_wrong_is_seen():
    world, check = running_world()
    world.tally.distances[0] += 1
    with pytest.raises(BrokenInvariantError, match="distances"):
        check(world)
