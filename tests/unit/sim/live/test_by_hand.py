"""Live simulations that can be worked out on paper."""

import dataclasses

import pytest

from boathouse_policies import profiles
from boathouse_policies.model import Distance
from boathouse_sim import topology, work
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import DynamicAllocation, Live, MapReduce
from boathouse_sim.workload import Cluster, WorkloadError
from tests.builders import simulations


def test_a_reducer_that_starts_after_the_maps_copies_sorts_and_reduces():
    found = simulations.live_workload(simulations.mapreduce(maps=3, reduces=1, slow_start=1.0), cores=3)
    assert simulations.job_times_s(found) == (10 + 4 + 6,)


def test_an_early_reducer_has_copied_what_there_was_and_lacks_the_last_map_alone():
    late = simulations.mapreduce(maps=3, reduces=1, slow_start=0.5)
    # Two cores: maps until 10, then the third map and the reducer: it copies two thirds by 20, the rest in 4/3 s.
    assert simulations.job_times_s(simulations.live_workload(late, cores=2)) == (
        pytest.approx(20 + 4 / 3 + 6, abs=0.002),
    )


def test_reducers_hold_their_room_while_they_wait_for_maps():
    early = simulations.mapreduce(maps=2, reduces=1, slow_start=0.0)
    other = simulations.mapreduce("1", maps=1, submit_ms=1)
    # Three cores: two maps and the idle reducer; the other job comes when all are taken.
    assert simulations.job_times_s(simulations.live_workload(early, other, cores=3))[1] == pytest.approx(20, abs=0.01)


def test_without_slow_start_reducers_come_after_all_maps():
    found = simulations.records(
        simulations.live_workload(simulations.mapreduce(maps=2, reduces=1, slow_start=1.0), cores=4)
    )
    assert [record.kind for record in found] == ["map", "map", "reduce"]
    assert found[-1].placed_ms == 10_000


def test_job_times_are_in_the_order_of_the_workload():
    later, first = (
        simulations.mapreduce("a", map=simulations.mapper(3.0)),
        simulations.mapreduce("b"),
    )
    assert simulations.job_times_s(simulations.live_workload(first, later)) == (10.0, 3.0)


def test_an_application_holds_its_executors_until_its_last_task():
    # Two executors of two slots: eight tasks in two waves of 10 s, then two tasks in one.
    app = simulations.spark(tasks=(8, 2))
    assert simulations.job_times_s(simulations.live_workload(app)) == (30.0,)
    assert {
        record.ended_ms for record in simulations.records(simulations.live_workload(app)) if record.kind == "executor"
    } == {30_000}


def test_executors_are_asked_for_by_a_driver_that_runs():
    app = simulations.spark(tasks=(4,), driver=simulations.container(mb=500), startup_ms=3000)
    assert simulations.job_times_s(simulations.live_workload(app, cores=8)) == (3.0 + 3.0 + 10.0,)


def test_a_gang_starts_together_or_not_at_all():
    block = simulations.mapreduce("0", map=simulations.mapper(7.0, mb=3000))
    app = simulations.spark(
        executors=2, min_executors=2, driver=simulations.container(mb=2000), tasks=(4,), submit_ms=1
    )
    # 8,000 MB: 3,000 are taken, 6,000 must come together.
    placed = {
        record.placed_ms
        for record in simulations.records(simulations.live_workload(block, app, cores=16))
        if record.job == "s"
    }
    assert min(placed) == 7000


def test_a_first_stage_waits_for_most_executors_or_half_a_minute():
    app = simulations.spark(executors=3, tasks=(2,), mb=4000)
    assert simulations.job_times_s(simulations.live_workload(app, cores=16)) == (40.0,)


def test_dynamic_allocation_releases_idle_executors_and_requests_more_for_pending_tasks():
    app = simulations.spark(executors=1, tasks=(1, 8, 1), dynamic=DynamicAllocation(least=1, most=4, idle_s=2.0))
    found = simulations.records(simulations.live_workload(app, cores=8))
    ends = sorted(record.ended_ms for record in found if record.kind == "executor")
    assert ends == [22_000, 22_000, 22_000, 30_000]


def test_half_the_cpu_takes_twice_as_long_to_compute_and_not_longer_to_read():
    half_read = work.segment("map", cpu_s=8, read_mb=200)
    machine = topology.Machine(name="n", cores=1, mem_mb=8000, speed=0.5)
    assert simulations.job_times_s(
        simulations.live_workload(
            simulations.mapreduce(map=simulations.container(half_read)), cluster=Cluster.of([machine])
        )
    ) == (18.0,)


def test_less_memory_costs_what_the_penalty_says():
    jobs = simulations.mapreduce(maps=3, map=simulations.container(simulations.cpu(), mb=6000, factor=1.2))
    found = simulations.results(simulations.live_workload(jobs, mb=10_000), "yarn-me")
    assert (found.elastic_tasks, found.job_times_s) == (2, (12.0,))


def test_reading_from_elsewhere_takes_longer_by_distance():
    reading, two = work.Reading(server=1.0, rack=3.0, anywhere=4.0), work.segment("map", cpu_s=5, read_mb=500)
    job = MapReduce(id="0", maps=1, map=simulations.container(two), replicas=1)
    elsewhere = [
        topology.Machine(name="a", cores=1, mem_mb=500, rack="r0"),
        topology.Machine(name="b", cores=1, mem_mb=8000, rack="r1"),
    ]
    seeds = [
        simulations.records(simulations.live_workload(job, cluster=Cluster.of(elsewhere), reading=reading), seed=s)
        for s in range(8)
    ]
    found = {record.distance: record.ended_ms for (record,) in seeds}
    assert found == {Distance.NODE: 10_000, Distance.ANYWHERE: 25_000}


def test_maps_go_where_their_blocks_are():
    job = simulations.mapreduce(maps=40, replicas=3)
    found = simulations.results(simulations.live_workload(job, nodes=10, racks=2, cores=4, mb=4000))
    assert sum(found.distances) == 40
    assert found.node_local_share >= 0.9


def test_equal_seeds_give_equal_records_and_others_do_not():
    found = simulations.live_workload(
        simulations.mapreduce(maps=9, reduces=2, replicas=2), simulations.spark(), nodes=3, jitter=0.3
    )
    assert (
        simulations.records(found, seed=1) == simulations.records(found, seed=1) != simulations.records(found, seed=2)
    )


def test_a_tasks_luck_and_blocks_do_not_depend_on_the_policy():
    found = simulations.live_workload(
        *(simulations.mapreduce(str(i), maps=5, replicas=2) for i in range(3)), nodes=2, cores=2, jitter=0.3
    )
    lucks = [
        {(record.job, record.index): record.ended_ms - record.started_ms for record in simulations.records(found, name)}
        for name in ("fifo", "fair")
    ]
    assert lucks[0].keys() == lucks[1].keys()
    assert lucks[0] == lucks[1]


@pytest.mark.parametrize("name", ["fifo", "fair", "yarn", "yarn-no-reservations", "srjf", "yarn-me"])
def test_plain_jobs_take_as_long_as_in_the_plain_simulator(name):
    jobs = [
        simulations.job(
            str(i), simulations.phase(4 + i, 10 + i, 2000), simulations.phase(2, 5, 1000, kind="reduce"), at_s=3 * i
        )
        for i in range(4)
    ]
    found = simulations.workload(*jobs, nodes=2)
    live = dataclasses.replace(found, conditions=Conditions())
    assert simulations.job_times_s(live, name) == simulations.job_times_s(found, name)


def test_a_task_larger_than_any_machine_is_refused():
    with pytest.raises(WorkloadError, match="job 0, map: a task asks for 9000 MB"):
        simulations.results(simulations.live_workload(simulations.mapreduce(map=simulations.mapper(mb=9000))))


def test_jobs_that_would_never_be_placed_end_the_simulation_with_their_reasons():
    found = simulations.live_workload(simulations.mapreduce(), outages=simulations.outages(("n0", 5.0, None)))
    world = simulations.run(Live(found, profiles.build("fifo")))
    with pytest.raises(RuntimeError, match="1 of 0/0/map"):
        world.finished()
